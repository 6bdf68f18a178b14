"""Numbers of heads that code derives: from the width of the model, and that of a head."""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

from torch import nn

from attentest.targets.adapt.components import squashed
from attentest.targets.adapt.fillings import HEAD_WIDTH_CODE, Filling
from attentest.targets.adapt.names import SIZES as NAMES
from attentest.targets.adapt.probing import SIZES, undisturbed
from attentest_spec import Sizes


def derived_heads(
    fillings: Mapping[str, Filling], build: Callable[[Sizes], Any]
) -> dict[str, Filling]:
    """Return the widths of a head among `fillings`, as what settles the number of heads.

    That holds where what `build` makes has their number by its name; nothing is returned else.
    """
    widths = {own: one for own, one in fillings.items() if one.code == HEAD_WIDTH_CODE}
    if not widths or not _holds_heads(build):
        return {}
    return {
        own: dataclasses.replace(one, settles=frozenset(["heads"])) for own, one in widths.items()
    }


def _holds_heads(build: Callable[[Sizes], Any]) -> bool:
    try:
        with undisturbed():
            built = build(SIZES)
    except Exception:  # code that a user wrote may raise anything
        return False
    parts = built.modules() if isinstance(built, nn.Module) else ()
    held = [one for part in parts for one in vars(part).items()]
    return any(squashed(own) in NAMES["heads"] and n == SIZES.heads for own, n in held)
