"""Stacks whose norms the spec has otherwise: one for each layer, two epsilons, those of others.

A layer that calls one norm before or after each sublayer gets copies of it, one for each call,
norms of two epsilons get one, and layers that begin with the last norm of the layer before them get
their own. The classes need nothing else of the suite: reproductions and
written adapters contain their source.
"""

import copy
import inspect
import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
from torch import Tensor, nn

from attentest.targets.adapt.adapter import Adapter
from attentest.targets.adapt.code import Code
from attentest.targets.adapt.parameters.found import FoundTable, Observed
from attentest.targets.adapt.parameters.stacks import lists_of_layers
from attentest.targets.adapt.parameters.units import units
from attentest.targets.adapt.probing import undisturbed
from attentest.targets.adapt.reading import Reading
from attentest.targets.adapt.unspecified.branches import epsilons_of, has_norms_by_layer
from attentest.targets.adapt.wrappers.wrapper import WIDTH, Wrapper
from attentest.targets.deep_copies import copy_of
from attentest_spec.torch import to_array, to_tensor


class InTurn(nn.Module):
    """Copies of one norm: those calls that are in one call of its layer get one each, in order."""

    def __init__(self, norm: nn.Module, times: int) -> None:
        super().__init__()
        self.norms = nn.ModuleList(copy.deepcopy(norm) for _ in range(times))
        self.turn = 0

    def restart(self, *_: object) -> None:
        """Begin with the first one again: the layer is called."""
        self.turn = 0

    def forward(self, x: Tensor) -> Any:
        """Return what the next norm returns."""
        self.turn += 1
        return self.norms[self.turn - 1](x)


def begun(in_turn: InTurn, call: Callable[..., Any], *args: Any, **named: Any) -> Any:
    """Return what a `call` of a layer returns, whose norms begin with the first one again."""
    in_turn.restart()
    return call(*args, **named)


class OwnNorms(nn.Module):
    """The stack `module` whose layers have a norm of their own for each of `times` calls.

    `layers` is the path of the list of layers, `norm` that of the one norm in each of them.
    """

    def __init__(
        self, module: nn.Module, width: int, *, layers: str, norm: str, times: int
    ) -> None:
        super().__init__()
        self.module, self.width = module, width
        path, _, own = norm.rpartition(".")
        for layer in module.get_submodule(layers).children():
            in_turn = InTurn(layer.get_submodule(norm), times)
            setattr(layer.get_submodule(path), own, in_turn)
            layer.forward = partial(begun, in_turn, layer.forward)  # code may call no hook

    def forward(self, *args: Any, **named: Any) -> Any:
        """Return what the stack returns."""
        return self.module(*args, **named)


class OneEpsilon(nn.Module):
    """The stack `module` whose norms have one `epsilon`, in the attributes called `names`."""

    def __init__(
        self, module: nn.Module, width: int, *, names: Sequence[str], epsilon: float
    ) -> None:
        super().__init__()
        self.module, self.width = module, width
        for one in module.modules():
            for own in names:
                if isinstance(vars(one).get(own), float):
                    setattr(one, own, epsilon)

    def forward(self, *args: Any, **named: Any) -> Any:
        """Return what the stack returns."""
        return self.module(*args, **named)


class Behind(nn.Module):
    """A layer, and a norm of what it returns."""

    def __init__(self, layer: nn.Module, norm: nn.Module) -> None:
        super().__init__()
        self.layer, self.norm = layer, norm

    def forward(self, *args: Any, **named: Any) -> Any:
        """Return what the layer returns, normed."""
        found = self.layer(*args, **named)
        if isinstance(found, tuple):
            return (self.norm(found[0]), *found[1:])
        return self.norm(found)


class NormsBehind(nn.Module):
    """The stack `module` with the norm at the beginning of each layer behind the one before it.

    `layers` is the path of the list of layers, `norm` that of the first norm in each of them, and
    `final` that of the norm behind the last one, which becomes a part of that. The first norm of
    the first layer is left out, or that of the last one where `final` is "".
    """

    def __init__(
        self, module: nn.Module, width: int, *, layers: str, norm: str, final: str
    ) -> None:
        super().__init__()
        self.module, self.width = module, width
        listed = module.get_submodule(layers)
        first, *norms = (one.get_submodule(norm) for one in listed.children())
        last = module.get_submodule(final) if final else first
        nothing = nn.Identity()
        for whole in (module, *vars(module).get("around", ())):
            for holder in list(whole.modules()):
                for own, held in list(holder.named_children()):
                    if held is last:
                        setattr(holder, own, nothing)
        path, _, own = norm.rpartition(".")
        for (number, layer), behind in zip(
            list(listed.named_children()), [*norms, last], strict=True
        ):
            setattr(layer.get_submodule(path), own, nn.Identity())
            listed.add_module(number, Behind(layer, behind))

    def forward(self, *args: Any, **named: Any) -> Any:
        """Return what the stack returns."""
        return self.module(*args, **named)


NORMS_BEHIND_SOURCE = "\n".join(
    [
        *("from typing import Any", "", "from torch import nn", "", ""),
        *(inspect.getsource(Behind), "", inspect.getsource(NormsBehind)),
    ]
)
OWN_NORMS_SOURCE = "\n".join(
    [
        *("import copy", "from collections.abc import Callable", "from functools import partial"),
        *("from typing import Any", "", "from torch import Tensor, nn", "", ""),
        *(inspect.getsource(InTurn), "", inspect.getsource(begun), ""),
        inspect.getsource(OwnNorms),
    ]
)
ONE_EPSILON_SOURCE = "\n".join(
    [
        *("from collections.abc import Sequence", "from typing import Any", ""),
        *("from torch import nn", "", "", inspect.getsource(OneEpsilon)),
    ]
)
"""The classes as code of their own, for a reproduction or a written adapter."""

IN_TURN = (
    "assumed that one norm for all sublayers of a layer, {}, is meant: this spec has one for each "
    "sublayer, and it is judged with one for each"
)
_BEHIND = (
    "assumed, and a mistake if norms before sublayers are meant, which --strict reports: the norm "
    "at the beginning of each layer, {}, is the last one of the layer before it, as the residual "
    "paths begin behind it. That of the first layer is one of the embedding, and is not compared"
)
_LAST = "; it is put behind the last one, which has none"
_EPSILON = (
    "assumed that norms of two epsilons are meant, {} with {:g} and the others with {:g}: this "
    "spec has one for all norms, and it is judged with {:g} for all"
)


def with_one_epsilon(code: Code, found: FoundTable, reading: Reading) -> Iterator[Code]:
    """Yield a stack whose norms have two epsilons with the one of most of them."""
    seen = found.observed
    if seen is None or reading.strict or not _is_stack(code) or not (held := epsilons_of(seen)):
        return
    most = max(held.values(), key=list(held.values()).count)
    path, epsilon = next((place[0], one) for place, one in held.items() if one != most)
    said = _EPSILON.format(path, epsilon, most, most)
    options: dict[str, Any] = {"names": sorted({one for _, one in held}), "epsilon": most}
    yield code.wrapped(Wrapper(OneEpsilon, ONE_EPSILON_SOURCE, WIDTH, said, options))


def with_own_norms(
    code: Code, adapter: Adapter, found: FoundTable, reading: Reading
) -> Code | None:
    """Return a stack with a norm for each sublayer of its layers, None where that is no other.

    A watched call has to give the same numbers.
    """
    seen = found.observed
    if seen is None or reading.strict or not _is_stack(code):
        return None
    if not has_norms_by_layer(found, code.component):
        return _with_norms_behind(code, adapter, seen)
    own, times = units(seen.module, seen.sizes.heads), 2 if code.component == "encoder" else 3
    for layers in lists_of_layers(own, seen.sizes):
        start = f"{layers.start}0."
        norms = [one.path.removeprefix(start) for one in layers.units if one.kind == "norm"]
        if len(norms) != 1:
            continue
        said = IN_TURN.format(f"{start}{norms[0]}")
        path = layers.start.removesuffix(".")
        options: dict[str, Any] = {"layers": path, "norm": norms[0], "times": times}
        wrapper = Wrapper(OwnNorms, OWN_NORMS_SOURCE, WIDTH, said, options)
        if _computes(wrapper, adapter, seen):
            return code.wrapped(wrapper)
    return None


def _with_norms_behind(code: Code, adapter: Adapter, seen: Observed) -> Code | None:
    """Return an encoder with the first norm of each layer behind the one before it.

    None where that is no other, as a watched call shows whose input is normed before, and where
    the code says that its norms come before the sublayers.
    """
    if code.component != "encoder" or not seen.run.samples:
        return None
    own = units(seen.module, seen.sizes.heads)
    for layers in lists_of_layers(own, seen.sizes):
        start = f"{layers.start}0."
        held = {one: _path(seen.module, one.path) for one in own if one.kind == "norm"}
        inside = [path for one, path in held.items() if layers.holds(one)]
        norms = [one.removeprefix(start) for one in inside if one.startswith(start)]
        final = [path for one, path in held.items() if not layers.holds(one)]
        layer = seen.module.get_submodule(start.rstrip("."))
        if _says_before(code.thing, type(layer)):
            continue
        for norm in norms if len(norms) == 2 and len(final) < 2 else ():
            if _OF_SUBLAYER.search(norm):
                continue
            path = layers.start.removesuffix(".")
            options: dict[str, Any] = {"layers": path, "norm": norm, "final": "".join(final)}
            said = _BEHIND.format(f"{path}.*.{norm}") + _LAST * (not final)
            wrapper = Wrapper(NormsBehind, NORMS_BEHIND_SOURCE, WIDTH, said, options)
            first = copy_of(seen.module.get_submodule(f"{start}{norm}"))
            if _computes(wrapper, adapter, seen, first, is_last=not final):
                return code.wrapped(wrapper)
    return None


_BEFORE = re.compile(r"pre[-_ ]?(ln|(layer[-_ ]?)?norm)|norm[-_ ]?first", re.IGNORECASE)
_OF_SUBLAYER = re.compile(r"att|sa_|_sa|mha", re.IGNORECASE)
"""Names of a norm that say which sublayer it belongs to: one of the layer that holds it."""


def _says_before(*classes: Any) -> bool:
    """Say whether a file of one of the `classes` has words for norms before sublayers."""
    try:
        texts = [inspect.getsource(inspect.getmodule(one) or one) for one in classes]
    except (OSError, TypeError):
        return False
    return any(_BEFORE.search(one) is not None for one in texts)


def _path(module: nn.Module, path: str) -> str:
    """Return the path of a norm, whose only parameter may be what is at the `path`."""
    return path if path in dict(module.named_modules()) else path.rpartition(".")[0]


def _is_stack(code: Code) -> bool:
    built = code.construction is not None and code.wrapper is None
    return built and code.component in ("encoder", "decoder")


def _computes(
    wrapper: Wrapper,
    adapter: Adapter,
    seen: Observed,
    norm: nn.Module | None = None,
    *,
    is_last: bool = False,
) -> bool:
    """Say whether the observed module gives what it gave with the class around it.

    A `norm` that it does without norms its first input, and what it is to give where `is_last`.
    """
    if not seen.run.samples:
        return False
    sample = seen.run.samples[0]
    inputs = [to_tensor(one) if isinstance(one, np.ndarray) else one for one in sample.inputs]
    wanted = sample.output
    try:
        with undisturbed():
            if norm is not None:
                inputs[0] = norm(inputs[0])
                wanted = to_array(norm(to_tensor(wanted))) if is_last else wanted
            answer = to_array(adapter(wrapper(copy_of(seen.module), seen.sizes), *inputs))
    except Exception:  # its layers call the norm more often, or no hook is called with them
        return False
    return answer.shape == wanted.shape and np.allclose(answer, wanted, 1e-12, 1e-12)
