"""Norms that calls make anew, as `nn.LayerNorm(width)(x)` in a forward does.

Their weights are in no state and are never trained. The rest of such a model is judged with a norm
that it holds, and does not train, for each of these. The class and the function need nothing else
of the suite: written adapters contain their source.
"""

import inspect
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from attentest.targets.adapt.parameters.building import DISTINCT
from attentest.targets.models.inferring import Inferred, probe_of
from attentest.targets.models.trials import Building


class NormsOfCalls(TorchFunctionMode):
    """Calls the norms that the module `owner` holds for those that it makes in its calls."""

    def __init__(self, owner: nn.Module) -> None:
        super().__init__()
        self.owner: Any = owner
        self.turn = 0

    def enter(self, *_: object) -> None:
        """Begin with the first norm: the owner is called."""
        self.turn = 0
        super().__enter__()  # type: ignore[no-untyped-call]

    def leave(self, *_: object) -> None:
        """Leave the norms of others as they are."""
        super().__exit__(None, None, None)  # type: ignore[no-untyped-call]

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Return what `func` does, or the norm in turn where that of a call is called."""
        given = dict(kwargs or {})
        if func is nn.functional.layer_norm:
            given |= dict(zip(("input", "shape", "weight", "bias", "eps"), args, strict=False))
            weight = given.get("weight")
            if weight is not None and all(weight is not one for one in self.owner.parameters()):
                self.turn += 1
                norm = self.owner.norms_of_calls[self.turn - 1]
                norm.eps = given.get("eps", norm.eps)
                return norm(given["input"])
        return func(*args, **(kwargs or {}))


def norms_held(model: nn.Module, width: int, counts: Mapping[str, int]) -> nn.Module:
    """Return `model` with so many norms in each module of the classes that `counts` has.

    Their weights are not trained, as those that a call makes are not.
    """
    for one in list(model.modules()):
        if number := counts.get(type(one).__name__, 0):
            one.norms_of_calls = nn.ModuleList(nn.LayerNorm(width) for _ in range(number))
            one.norms_of_calls.requires_grad_(False)
            made = NormsOfCalls(one)
            one.register_forward_pre_hook(made.enter)
            one.register_forward_hook(made.leave, always_call=True)
    return model


NORMS_OF_CALLS_SOURCE = "\n".join(
    [
        *("from collections.abc import Mapping", "from typing import Any", ""),
        *("from torch import nn", "from torch.overrides import TorchFunctionMode", "", ""),
        *(inspect.getsource(NormsOfCalls), "", inspect.getsource(norms_held)),
    ]
)
"""The class and the function as code, for a reproduction or a written adapter."""

_SAID = (
    "norms are made anew in each call of {}, so that nothing trains their weights and no state "
    "holds them, which is a mistake: judged with norms that are held in their places, untrained"
)


def with_norms_of_calls(built: Building, inferred: Inferred) -> Building:
    """Return `built` with norms that it holds in the places of those that its calls make.

    It is returned as it is where these make none, or others than over the width of the model.
    """
    probe = probe_of(built, DISTINCT.but(target_vocabulary=DISTINCT.source_vocabulary))
    call = inferred.call.compiled()
    watched = _Watched(probe.model)
    with watched:
        before = probe.called(call, *probe.tokens)
    watched.close()
    counts = dict(watched.most)
    if not counts or watched.widths != {(DISTINCT.d_model,)} or not isinstance(before, Tensor):
        return built
    said = _SAID.format(" and ".join(counts))
    other = replace(
        built,
        expression=f"{norms_held.__name__}({built.expression}, sizes.d_model, {counts})",
        space={**built.space, norms_held.__name__: norms_held},
        said=(*built.said, said),
        doubts=(*built.doubts, said),
    )
    held = norms_held(probe.model, DISTINCT.d_model, counts).double()
    for widened in dict.fromkeys((False, built.widened)):  # what they made in float32 is held now
        after = replace(probe, model=held, widened=widened).called(call, *probe.tokens)
        same = isinstance(after, Tensor) and after.shape == before.shape
        if same and bool((after - before).abs().max() < _NEAR):
            return replace(other, widened=widened)
    return built


_NEAR = 1e-5
"""Largest difference from the output of the model as it is, whose norms may be in float32."""


class _Watched(TorchFunctionMode):
    """Counts the norms that each class of a model makes in a call, and notes their widths."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model
        self.active: list[nn.Module] = []
        self.within: Counter[nn.Module] = Counter()
        self.most: dict[str, int] = {}
        self.widths: set[tuple[int, ...]] = set()
        self.handles: list[Any] = []
        for one in model.modules():
            self.handles += [
                one.register_forward_pre_hook(partial(self._enter, one)),
                one.register_forward_hook(partial(self._leave, one), always_call=True),
            ]

    def close(self) -> None:
        """Remove what watches the model."""
        for one in self.handles:
            one.remove()

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Return what `func` does, and count a norm whose weight is none of the model's."""
        weight = args[2] if len(args) > 2 else (kwargs or {}).get("weight")
        own = func is nn.functional.layer_norm and weight is not None and bool(self.active)
        if own and all(weight is not one for one in self.model.parameters()):
            owner = self.active[-1]
            self.within[owner] += 1
            name = type(owner).__name__
            self.most[name] = max(self.most.get(name, 0), self.within[owner])
            self.widths.add(tuple(args[1] if len(args) > 1 else kwargs["normalized_shape"]))
        return func(*args, **(kwargs or {}))

    def _enter(self, one: nn.Module, *_: object) -> None:
        self.active.append(one)
        self.within[one] = 0

    def _leave(self, one: nn.Module, *_: object) -> None:
        self.active.pop()
