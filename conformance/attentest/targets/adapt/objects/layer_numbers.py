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
        fillings={**with_more(found.fillings, "layers", 1), index[0]: fixed(1)},
        remark=LATER.format(index[0]),
    )
    try:
        with undisturbed():
            names = [{name for name, _ in one(SIZES).named_parameters()} for one in (found, later)]
    except Exception:  # code that a user wrote may raise anything; it is reported later
        return found
    return later if names[0] < names[1] else found


def with_more(
    fillings: Mapping[str, Filling], size: str, more: int, also: str = ""
) -> dict[str, Filling]:
    """Return `fillings` with `more` in addition to the size `size`, nested or not.

    `also` is another size that is added, "" for none.
    """
    added = f"{size} + {more}" + f" + {also}" * bool(also)
    increased = Filling(
        added,
        lambda sizes: getattr(sizes, size) + more + (getattr(sizes, also) if also else 0),
        frozenset([size]),
        " + ".join(f"sizes.{one}" for one in (size, also) if one) + f" + {more}",
    )
    found = {}
    for own, one in fillings.items():
        if isinstance(one.value, Construction):
            inner = dataclasses.replace(
                one.value, fillings=with_more(one.value.fillings, size, more, also)
            )
            found[own] = Filling(f"({inner.words})", inner, inner.known)
        else:
            found[own] = increased if one.settles == {size} else one
    return found
