"""Layers that are built with their number in a stack, of which the first has fewer parts."""

import dataclasses
from collections.abc import Mapping

from attentest.targets.adapt.components import squashed
from attentest.targets.adapt.construction import Construction
from attentest.targets.adapt.fillings import Filling, fixed
from attentest.targets.adapt.names import LAYER_INDEX
from attentest.targets.adapt.probing import SIZES, undisturbed

LATER = (
    "assumed that the first layer of a stack has no part that the others have: it is judged as the "
    "second one, with {}=1"
)


def as_a_later_layer(found: Construction) -> Construction:
    """Return `found` with the number of the second layer, where the first has other parameters."""
    index = [own for own in found.fillings if squashed(own) in LAYER_INDEX]
    if len(index) != 1 or found.fillings[index[0]].value(SIZES) != 0:
        return found
    later = dataclasses.replace(
        found,
        fillings={**_with_one_more(found.fillings), index[0]: fixed(1)},
        remark=LATER.format(index[0]),
    )
    try:
        with undisturbed():
            names = [{name for name, _ in one(SIZES).named_parameters()} for one in (found, later)]
    except Exception:  # code that a user wrote may raise anything; it is reported later
        return found
    return later if names[0] < names[1] else found


_ONE_MORE = Filling(
    "layers + 1", lambda sizes: sizes.layers + 1, frozenset(["layers"]), "sizes.layers + 1"
)


def _with_one_more(fillings: Mapping[str, Filling]) -> dict[str, Filling]:
    """Return `fillings` with one layer more in the place of the number of layers, nested or not."""
    found = {}
    for own, one in fillings.items():
        if isinstance(one.value, Construction):
            inner = dataclasses.replace(one.value, fillings=_with_one_more(one.value.fillings))
            found[own] = Filling(f"({inner.words})", inner, inner.known)
        else:
            found[own] = _ONE_MORE if one.settles == {"layers"} else one
    return found
