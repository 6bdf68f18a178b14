"""Decoder-only models that have the numbers of the reference at some sizes alone."""

import re

from attentest.targets.adapt.reading import Unclear
from attentest.targets.language_models.construction.building import Building
from attentest.targets.language_models.construction.parts import without_padding
from attentest.targets.language_models.verifying import TRIED

_AT_DEPTH = re.compile(r"at (\d+) layers ")


def depth_in(found: str) -> int:
    """Return the number of layers at which numbers differ, as `found` says; 0 for none."""
    depth = _AT_DEPTH.match(found)
    return int(depth[1]) if depth else 0


def other_at_sizes(name: str, building: Building, found: str) -> Unclear:
    """Return the question about a model that differs from the reference as `found` says.

    Where it does at more layers than were tried first, the last of them is another one.
    """
    layers = depth_in(found)
    text = (
        f"{name} was read as a decoder-only model ({building.expression}), and "
        f"has the numbers of the reference in the first probing call. At other sizes it has "
        f"not: {found}. Either that is a mistake which shows at some sizes alone, or layers "
        f"differ by their number, which the specification does not have, or an argument was "
        f"taken for another: say which is which with --argument SIZE=NAME, or fix one with "
        f"--give NAME=VALUE."
    )
    if layers > TRIED[0].layers:
        text = (
            f"{name} was read as a decoder-only model, and has the numbers of the reference with "
            f"up to {layers - 1} layers, and not with {layers}: the one of the number "
            f"{layers - 1}, counted from 0, computes something else than those before it, as one "
            f"without rotary positions or with a window may. The specification has one layer for "
            f"all: if that is meant, judge its layers by their class; --give NAME=VALUE fixes an "
            f"argument or a field of settings that makes them differ."
        )
    attempts = without_padding(building.expression, building.space)
    return Unclear(text, attempts=attempts, built=True)
