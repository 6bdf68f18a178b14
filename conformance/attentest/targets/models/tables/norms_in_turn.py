"""One norm for the sublayers of a layer: models are judged with one for each, called in turn.

The class and the function need nothing else of the suite: written adapters contain their source.
"""

import inspect
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from attentest.analysis.lines.recording import Place
from attentest.analysis.lines.torch_recording import line_of_caller
from attentest.targets.adapt.encoders.entering import is_norm
from attentest.targets.adapt.parameters.building import DISTINCT
from attentest.targets.adapt.reading import Reading, Unclear, Uncovered
from attentest.targets.adapt.wrappers.own_norms import IN_TURN, InTurn
from attentest.targets.models.inferring import Inferred, probe_of
from attentest.targets.models.probing import SOURCE_LENGTH, TARGET_LENGTH
from attentest.targets.models.tables.heads_of_layers import with_plain_head
from attentest.targets.models.tables.memory_norms import without_memory_norms
from attentest.targets.models.tables.norms_of_calls import with_norms_of_calls
from attentest.targets.models.trials import Building
from attentest.targets.nearest import shown_line


def untied(model: nn.Module, shared: Sequence[tuple[str, str, int]]) -> nn.Module:
    """Return `model` with one norm for each call in the place of one that its layers call often.

    `shared` names a list of layers, the norm in each of them, and how often a layer calls it.
    """
    for layers, norm, times in shared:
        path, _, own = norm.rpartition(".")
        for layer in model.get_submodule(layers).children():
            in_turn = InTurn(layer.get_submodule(norm), times)
            setattr(layer.get_submodule(path), own, in_turn)
            layer.register_forward_pre_hook(in_turn.restart)
    return model


UNTIED_SOURCE = "\n".join(
    [
        *("import copy", "from collections.abc import Sequence", "from typing import Any", ""),
        *("from torch import Tensor, nn", "", ""),
        *(inspect.getsource(InTurn), "", inspect.getsource(untied)),
    ]
)
"""The class and the function as code, for a reproduction or a written adapter."""

_NEAR = 1e-12

_IDLE = (
    "{} calls {} {} times in one layer, and {} never: one norm is in the place of another, and the "
    "spec has one for each sublayer. Call each where it is meant, or leave out what is not used, "
    "and ask again."
)


def demand_own_norms(built: Building, call: Callable[..., Any], name: str) -> None:
    """Raise Unclear where a layer calls one norm in the place of another that it holds."""
    probe = probe_of(built, DISTINCT.but(target_vocabulary=DISTINCT.source_vocabulary))
    counted = CountedNorms(probe.model)
    try:
        probe.called(call, *probe.tokens)
    finally:
        counted.close()
    if found := next(counted.in_places_of_others(), None):
        raise Unclear(_IDLE.format(name, *found))


_MEMORY = (
    "{0} norms its memory in the layers of its decoder, by the norm of what attends to it "
    "({1}{2}): this spec has a memory that its encoder has normed, or none has. Where that is not "
    "meant, it is a mistake, and --anyway (in Python: anyway=True) judges it."
)


def with_own_norms(built: Building, inferred: Inferred, name: str, reading: Reading) -> Building:
    """Return `built` with a norm for each sublayer, where the layers of a list have one for all.

    It is returned as it is where there is none, and where layers share a norm with one another.
    Raises Uncovered for layers that norm a memory by the norm of their own rows. Norms that calls
    make are held first, and a head of several matrices has one.
    """
    if reading.strict:
        return built
    built = with_norms_of_calls(with_plain_head(built, inferred), inferred)
    built = without_memory_norms(built, inferred, reading)
    probe = probe_of(built, DISTINCT.but(target_vocabulary=DISTINCT.source_vocabulary))
    call = inferred.call.compiled()
    counted = CountedNorms(probe.model)
    try:
        before = probe.called(call, *probe.tokens)
    finally:
        counted.close()
    found = list(counted.shared())
    if not reading.anyway and (norm := counted.of_two_inputs()):
        at = counted.of_source.get(norm)
        raise Uncovered(_MEMORY.format(name, norm, f" at {shown_line(at)}" if at else ""))
    if not found or not isinstance(before, Tensor):
        return built
    names = ", ".join(dict.fromkeys(f"{layers}.0.{norm}" for layers, norm, _ in found))
    said = IN_TURN.format(names)
    other = replace(
        built,
        expression=f"{untied.__name__}({built.expression}, {found})",
        space={**built.space, untied.__name__: untied},
        said=(*built.said, said),
        doubts=(*built.doubts, said),
    )
    return other if _computes(other, inferred, found, before) else built


def _computes(
    other: Building, inferred: Inferred, found: Sequence[tuple[str, str, int]], wanted: Tensor
) -> bool:
    """Say whether a model with norms of their own gives the output of the tied one."""
    tied = probe_of(other, DISTINCT.but(target_vocabulary=DISTINCT.source_vocabulary))
    own = probe_of(replace(other, expression=_inside(other.expression)), tied.sizes).model
    held = dict(own.named_parameters())
    with torch.no_grad():
        for name, one in tied.model.named_parameters():
            if tied_name(name) not in held:  # the norm has another name in the layer
                return False
            one.copy_(held[tied_name(name)])
    answer = tied.called(inferred.call.compiled(), *tied.tokens)
    near = isinstance(answer, Tensor) and answer.shape == wanted.shape
    return near and bool((answer - wanted).abs().max() <= _NEAR * wanted.abs().max())


def _inside(expression: str) -> str:
    """Return the expression of the tied model in that of the other."""
    return expression[len(untied.__name__) + 1 :].rpartition(", [")[0]


def tied_name(name: str) -> str:
    """Return the name that a parameter of a norm in turn has in the tied model."""
    before, number, after = name.partition(".norms.")
    return f"{before}.{after.partition('.')[2]}" if number else name


class CountedNorms:
    """Counts how often each norm of a model is called in one call of each layer around it.

    Calls with the input of the call before, as of a norm for query, key and value each, are one.
    """

    def __init__(self, model: nn.Module) -> None:
        self.model = model
        self.active: list[str] = []
        self.within: Counter[tuple[str, str]] = Counter()
        self.most: Counter[tuple[str, str]] = Counter()
        self.handles: list[Any] = []
        self.idle: set[str] = set()
        self.inputs: dict[str, object] = {}
        self.lengths: dict[str, set[int]] = {}
        self.of_source: dict[str, Place] = {}
        for path, module in model.named_modules():
            if path.rpartition(".")[2].isdigit():
                self.handles += [
                    module.register_forward_pre_hook(partial(self._enter, path)),
                    module.register_forward_hook(partial(self._leave, path)),
                ]
            elif is_norm(module) and any(True for _ in module.parameters(recurse=False)):
                self.idle.add(path)
                self.handles.append(module.register_forward_pre_hook(partial(self._norm, path)))

    def close(self) -> None:
        """Remove what watches the model."""
        for one in self.handles:
            one.remove()

    def shared(self) -> Iterator[tuple[str, str, int]]:
        """Yield a list of layers, the norm in each, and how often each layer calls it."""
        for (layer, norm), times in self.most.items():
            layers, _, number = layer.rpartition(".")
            inside = norm.removeprefix(f"{layer}.")
            if times < 2 or not layers or number != "0" or self._is_innermost(layer, norm):
                continue
            if len(self.lengths[norm]) > 1:
                continue  # one of its inputs is a memory
            if any(one.startswith(f"{layer}.") for one in self.idle):
                continue  # it is called in the place of another
            children = list(self.model.get_submodule(layers).named_children())
            same = [(f"{layers}.{one}", f"{layers}.{one}.{inside}") for one, _ in children]
            if all(self.most[one] == times for one in same):
                yield layers, inside, times

    def of_two_inputs(self) -> str:
        """Return a norm of a layer that gets rows of the source and of the target, "" for none."""
        both = {SOURCE_LENGTH, TARGET_LENGTH}
        held = (norm for (_, norm), times in self.most.items() if times > 1)
        return next((norm for norm in held if self.lengths[norm] == both), "")

    def in_places_of_others(self) -> Iterator[tuple[str, int, str]]:
        """Yield a norm that a layer calls often, how often, and one of the layer that is idle."""
        for (layer, norm), times in self.most.items():
            if times > 1 and not self._is_innermost(layer, norm):
                idle = sorted(one for one in self.idle if one.startswith(f"{layer}."))
                yield from ((norm, times, one) for one in idle)

    def _is_innermost(self, layer: str, norm: str) -> bool:
        """Say whether a layer inside of `layer` calls the norm as often."""
        most = self.most[layer, norm]
        return any(
            inner.startswith(f"{layer}.") and one == norm and times == most
            for (inner, one), times in self.most.items()
        )

    def _enter(self, path: str, *_: object) -> None:
        self.active.append(path)
        for key in [one for one in self.within if one[0] == path]:
            del self.within[key]

    def _leave(self, path: str, *_: object) -> None:
        self.active.remove(path)

    def _norm(self, path: str, _: nn.Module, inputs: tuple[object, ...]) -> None:
        self.idle.discard(path)
        before = self.inputs.get(path)
        self.inputs[path] = inputs[0] if inputs else None
        shape = getattr(self.inputs[path], "shape", ())
        known = [one for one in shape[:-1] if one in (SOURCE_LENGTH, TARGET_LENGTH)]
        self.lengths.setdefault(path, set()).update(known)
        if known == [SOURCE_LENGTH] and (at := line_of_caller()):
            self.of_source.setdefault(path, at)
        if before is not None and before is self.inputs[path]:
            return
        for layer in self.active:
            if path.startswith(f"{layer}."):
                self.within[layer, path] += 1
                self.most[layer, path] = max(self.most[layer, path], self.within[layer, path])
