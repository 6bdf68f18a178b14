"""Mixtures of experts in decoder-only models: which of them a network may take the place of.

The rest of the model is judged then. A mixture is one that makes each row of that row alone, and
adds nothing else to it.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves

from attentest.targets.adapt.encoders.entering import is_norm
from attentest.targets.language_models.calling import Call, probe_tokens
from attentest.targets.language_models.construction.building import PROBE, Building
from attentest.targets.language_models.numbers.experts import is_mixture
from attentest.targets.language_models.numbers.tracing import NEAR
from attentest.targets.language_models.probing import idle_parameters, probe_of, probe_sizes
from attentest.targets.language_models.surrounded.mixtures import networked
from attentest.targets.single import widened
from attentest_spec import Sizes

_SAID = (
    "not compared: {}, a mixture of experts ({}): the rest is judged with a network in its place, "
    "{}, and what is said of networks is said of that; its name alone has it judged by itself"
)
_OF_NETWORKS = ("activation", "feed_forward_gate", "feed_forward_bias")
_EXPERT, _DENSE, _PLAIN = "a copy of one expert", "that of the other layers", "of two matrices"


@dataclass(frozen=True)
class _Called:
    """A call of a module: its arguments, and the rows (B, T, D) that it gives."""

    args: tuple[Any, ...]
    given: Mapping[str, Any]

    @property
    def x(self) -> Tensor:
        """The rows that it gets."""
        return next(one for one in self._every if isinstance(one, Tensor))

    @property
    def _every(self) -> list[Any]:
        return [*self.args, *self.given.values()]

    def again(self, module: nn.Module, x: Tensor) -> Tensor | None:
        """Return the rows that `module` makes of x, None where one result is not its rows."""
        own = self.x
        args = [x if one is own else one for one in self.args]
        given = {name: x if one is own else one for name, one in self.given.items()}
        made = tree_leaves(module(*args, **given))
        rows = [one for one in made if isinstance(one, Tensor) and one.shape == x.shape]
        return rows[0] if len(rows) == 1 else None

    def returns_rows(self, module: nn.Module) -> bool:
        """Say whether the rows are all that `module` returns."""
        with torch.no_grad():
            return isinstance(module(*self.args, **self.given), Tensor)


def without_mixtures(built: Building, call: Call) -> Building:
    """Return `built` with networks in the place of its mixtures of experts, if it holds such.

    It is returned as it is where one of them makes more than rows of rows, and where parameters
    around them had no effect then.
    """
    with widened():
        try:
            model = probe_of(built, _deep(built))
            calls = _calls(model, call)
            found = dict(_outermost(model, calls))
        except Exception:  # code that a user wrote may raise anything
            return built
        kinds = tuple(dict.fromkeys(type(one).__name__ for one in found.values()))
        every = {path for path, one in model.named_modules() if type(one).__name__ in kinds}
        if not found or any(not any(_is_in(one, own) for own in found) for one in every):
            return built
        idle = set(_idle(built, call))
        sources = list(_sources(built, found, calls))
        one_result = all(calls[path].returns_rows(one) for path, one in found.items())
        for (source, words), alone in product(sources, [True, False][not one_result :]):
            code = f"{source}, alone=True" if alone else source
            other = _networked(built, kinds, code, _shown(found), words)
            try:
                if set(_idle(other, call)) <= idle:
                    return other
            except Exception:  # code that a user wrote may raise anything
                continue
    return built


def _is_in(path: str, own: str) -> bool:
    return path == own or path.startswith(f"{own}.")


def _shown(found: Mapping[str, nn.Module]) -> dict[str, str]:
    """Return the paths of mixtures with a star for each number, and the names of their classes."""
    return {
        ".".join("*" if part.isdigit() else part for part in path.split(".")): type(one).__name__
        for path, one in found.items()
    }


def _networked(
    built: Building, kinds: tuple[str, ...], source: str, shown: Mapping[str, str], words: str
) -> Building:
    names = " and ".join(dict.fromkeys(shown.values()))
    return replace(
        built,
        expression=f"{networked.__name__}({built.expression}, {kinds}, {source})",
        space={**built.space, networked.__name__: networked},
        doubts=(*built.doubts, _SAID.format(" and ".join(shown), names, words)),
        around=(*built.around, *(_OF_NETWORKS if words == _PLAIN else ())),
    )


def _calls(model: nn.Module, call: Call) -> dict[str, _Called]:
    """Return the first call of each module of `model` that may be a mixture, by its path."""
    calls: dict[str, _Called] = {}
    if not any(map(_may_be_mixture, model.modules())):
        return calls
    held = []
    for path, one in model.named_modules():
        if path and _may_be_mixture(one):

            def keep(_: Any, args: Any, given: Any, path: str = path) -> None:
                calls.setdefault(path, _Called(args, given))

            held.append(one.register_forward_pre_hook(keep, with_kwargs=True))
    call.compiled()(model, probe_tokens())
    for hook in held:
        hook.remove()
    return calls


def _may_be_mixture(module: nn.Module) -> bool:
    """Say whether the name of `module` is that of a mixture, or it holds a list of experts."""
    lists = (nn.ModuleList, nn.ModuleDict)
    return is_mixture(module) or any(
        "expert" in name.lower() and isinstance(one, lists) and len(one) > 1
        for name, one in module.named_children()
    )


def _outermost(model: nn.Module, calls: Mapping[str, _Called]) -> Iterator[tuple[str, nn.Module]]:
    """Yield the modules around no other that are mixtures by their numbers."""
    yielded: list[str] = []
    for path, called in calls.items():
        module = model.get_submodule(path)
        inside = any(_is_in(path, one) for one in yielded)
        if not inside and not any(map(is_norm, module.modules())) and _is_one(module, called):
            yielded.append(path)
            yield path, module


def _is_one(module: nn.Module, called: _Called) -> bool:
    """Say whether `module` makes each row of x of that row alone, and nothing without its maps."""
    x = called.x
    with torch.no_grad():
        rows, again = called.again(module, x), called.again(module, x)
        if rows is None or again is None or not torch.equal(rows, again):
            return False
        width, near = x.shape[-1], NEAR * float(rows.abs().max())
        order = torch.randperm(x.numel() // width, generator=torch.Generator().manual_seed(5))
        moved = called.again(module, x.reshape(-1, width)[order].reshape(x.shape))
        other = x.reshape(-1, width).clone()
        other[len(other) // 2 :] = other[len(other) // 2 :].flip(-1) * 2
        half = called.again(module, other.reshape(x.shape))
        if moved is None or half is None:
            return False
        flat = rows.reshape(-1, width)
        apart = (moved.reshape(-1, width) - flat[order]).abs().max()
        beside = (half.reshape(-1, width) - flat)[: len(other) // 2].abs().max()
        return bool(max(apart, beside) <= near) and _is_nothing_without_maps(module, called)


def _is_nothing_without_maps(module: nn.Module, called: _Called) -> bool:
    """Say whether all rows are 0 where the parameters are: a residual path would be left."""
    held = {name: one.detach().clone() for name, one in module.named_parameters()}
    try:
        for one in module.parameters():
            one.zero_()
        rows = called.again(module, called.x)
    finally:
        for name, one in module.named_parameters():
            one.copy_(held[name])
    return rows is not None and not rows.any()


def _sources(
    built: Building, found: Mapping[str, nn.Module], calls: Mapping[str, _Called]
) -> Iterator[tuple[str, str]]:
    """Yield the arguments that say which network is in the place of a mixture, and words on it."""
    dense = _dense(built(_deep(built)), found)
    said = f"dense={dense!r}, " if dense else ""
    first = [type(one).__name__ for one in built(PROBE.but(layers=1)).modules()]
    if dense in first:
        yield f"dense={dense!r}", _DENSE
    experts = [_expert(one, calls[path]) for path, one in found.items()]
    if experts[0] and len(set(experts)) == 1:
        yield f"{said}expert={experts[0]!r}", _EXPERT
    yield f"{said}widths=(sizes.d_model, sizes.d_ff)", _PLAIN


def _dense(model: nn.Module, found: Mapping[str, nn.Module]) -> str:
    """Return the class of what other layers hold in the place of the mixtures, "" for none.

    It is the one child that a layer without a mixture has under another name, or of another class.
    """
    inside = {_layer_of(path): path.removeprefix(f"{_layer_of(path)}.") for path in found}
    layers = set(inside)
    for layer in layers:
        parent, _, _ = layer.rpartition(".")
        for name, other in model.get_submodule(parent).named_children() if parent else ():
            if f"{parent}.{name}" in layers:
                continue
            place = dict(other.named_modules()).get(inside[layer])
            if place is not None and not type(place).__module__.startswith("torch."):
                return type(place).__name__
            own = {key: type(one) for key, one in model.get_submodule(layer).named_children()}
            apart = [one for key, one in other.named_children() if own.get(key) is not type(one)]
            own_class = len(apart) == 1 and not type(apart[0]).__module__.startswith("torch.")
            return type(apart[0]).__name__ if own_class else ""
    return ""


def _layer_of(path: str) -> str:
    """Return the path of the layer around a module: up to its last number."""
    parts = path.split(".")
    depth = max((at for at, part in enumerate(parts, 1) if part.isdigit()), default=0)
    return ".".join(parts[:depth])


def _expert(mixture: nn.Module, called: _Called) -> str:
    """Return the path of an expert that makes rows of rows, "" for none."""
    for path, one in mixture.named_modules():
        if isinstance(one, nn.ModuleList) and len(one) > 1 and "expert" in path.lower():
            try:
                with torch.no_grad():
                    rows = one[0](called.x.reshape(-1, called.x.shape[-1]))
            except Exception:  # code that a user wrote may raise anything
                continue
            if isinstance(rows, Tensor) and rows.shape[-1] == called.x.shape[-1]:
                return f"{path}.0"
    return ""


def _deep(built: Building) -> Sizes:
    """Return the sizes of the probe with more layers: the first ones may have no mixture."""
    return probe_sizes(built).but(layers=4)


def _idle(built: Building, call: Call) -> list[str]:
    """Return the names of parameters that the logits of a model do not depend on."""
    model = probe_of(built, _deep(built))
    with torch.enable_grad():
        return idle_parameters(model, call.compiled()(model, probe_tokens()))
