"""Numbers of layers that code has where no argument says them: those that its stacks follow."""

from collections.abc import Callable, Mapping
from itertools import pairwise
from operator import attrgetter
from typing import Any

from torch import nn

from attentest.targets.adapt.components import squashed
from attentest.targets.adapt.construction import Construction
from attentest.targets.adapt.fillings import STACKS, Filling
from attentest.targets.adapt.names import SIZES as NAMES
from attentest.targets.adapt.probing import SIZES, undisturbed
from attentest.targets.adapt.reading import Unclear
from attentest.targets.constants.source import Constants

_LAYERS = Filling("layers", attrgetter("layers"), frozenset(["layers"]), "sizes.layers")
_NUMBERS = 1, 2, 3, 4
_MOST = 6
"""The largest number of names that are tried."""


def layers_of_code(
    named: Mapping[str, Any], component: str, built: Construction, found: Mapping[str, Filling]
) -> dict[str, Filling]:
    """Return the one of the numbers `named` in code that counts the layers of what is `built`.

    With each further one, it holds as many more parameters. `found` are the other constants that
    are sizes. There is none where an argument says how many layers there are.
    """
    every = [*built.fillings.values(), *built.constants.values(), *found.values()]
    if component not in STACKS or any("layers" in one.settles for one in every):
        return {}
    for own in [one for one, value in named.items() if _may_count(one, value)][:_MOST]:
        constants = {**built.constants, **found, own: _LAYERS}
        if is_deeper_by_layers(built.with_constants(constants)):
            return {own: _LAYERS}
    return {}


def _may_count(own: str, value: Any) -> bool:
    is_named = own == Constants.listed or squashed(own) in NAMES["layers"]
    return is_named and type(value) is int and value > 0 and own.isidentifier()


def is_deeper_by_layers(build: Callable[..., Any]) -> bool:
    """Say whether what `build` makes holds as many more parameters with each further layer."""
    counts = _counts(build)
    steps = {b - a for a, b in pairwise(counts)}
    return len(steps) == 1 and min(steps) > 0


def demand_layers(build: Callable[..., Any], name: str) -> None:
    """Raise Unclear where what `build` makes holds as many parameters with any number of layers."""
    if len({*_counts(build)}) == 1:
        raise Unclear(_FIXED.format(name))


_FIXED = (
    "{} has a fixed number of layers: no argument says it, and no number of its code with a usual "
    "name. Make it an argument, such as num_layers, or name the class of its layers."
)


def _counts(build: Callable[..., Any]) -> list[int]:
    """Return the numbers of parameters of what `build` makes with more and more layers."""
    try:
        with undisturbed():
            made = [build(SIZES.but(layers=one)) for one in _NUMBERS]
    except Exception:  # code that a user wrote may raise anything
        return []
    modules = [one for one in made if isinstance(one, nn.Module)]
    return [sum(held.numel() for held in one.parameters()) for one in modules]
