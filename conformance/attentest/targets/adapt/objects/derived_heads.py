"""Numbers of heads that code derives: from the width of the model, and that of a head."""

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING

from torch import nn

from attentest.targets.adapt.components import squashed
from attentest.targets.adapt.fillings import HEAD_WIDTH_CODE, Filling
from attentest.targets.adapt.names import SIZES as NAMES
from attentest.targets.adapt.probing import SIZES, undisturbed

if TYPE_CHECKING:
    from attentest.targets.adapt.construction import Construction


def with_derived_heads(made: "Construction") -> "Construction":
    """Return `made`, with heads as a size where its parts hold their number, by its name.

    It is built with the width of a head then, and with no number of heads.
    """
    widths = {own: one for own, one in made.fillings.items() if one.code == HEAD_WIDTH_CODE}
    if not widths or "heads" in made.known or not _holds_heads(made):
        return made
    settled: Mapping[str, Filling] = {
        own: dataclasses.replace(one, settles=frozenset(["heads"])) for own, one in widths.items()
    }
    return dataclasses.replace(made, fillings={**made.fillings, **settled})


def _holds_heads(made: "Construction") -> bool:
    try:
        with undisturbed():
            built = made(SIZES)
    except Exception:  # code that a user wrote may raise anything
        return False
    parts = built.modules() if isinstance(built, nn.Module) else ()
    held = [one for part in parts for one in vars(part).items()]
    return any(squashed(own) in NAMES["heads"] and n == SIZES.heads for own, n in held)
