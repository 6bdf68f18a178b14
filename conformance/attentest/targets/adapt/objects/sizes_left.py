"""The one size that is left for an argument of which no name and no use says what it is."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Any

from torch import nn

from attentest.targets.adapt.fillings import NEEDED, Filling, sizes_known
from attentest.targets.adapt.objects.measured import measured
from attentest.targets.adapt.probing import SIZES as PROBED
from attentest.targets.adapt.probing import undisturbed
from attentest.targets.adapt.wrappers.lazy import materialised
from attentest_spec.components import inside

_AXES = ("d_model", "d_ff", "source_vocabulary", "target_vocabulary")
"""The sizes that parameters have as axes."""


def size_left(
    thing: Callable[..., Any],
    component: str,
    unknown: Sequence[str],
    read: Mapping[str, Filling | None],
) -> Filling | None:
    """Return the one size that is left for the one argument that is unknown, None for neither.

    What is built with it must have parameters with an axis of that size: an argument that is
    something else, such as the radius of a window, shows in no shape.
    """
    if (found := measured(thing, component, unknown[0], read)) is not None:
        return found
    left = _sizes_left(component, read.values())
    if "d_model" in left and left[0] not in sizes_known(read.values()):
        left = ["d_model"]  # the others have usual ratios to it, or are one
    if len(left) != 1 or left[0] not in _AXES or left[0] in sizes_known(read.values()):
        return None
    size = left[0]
    last = Filling(size, attrgetter(size), frozenset([size]), f"sizes.{size}")
    return last if is_axis(thing, read, unknown[0], last) else None


def is_axis(
    thing: Callable[..., Any], read: Mapping[str, Filling | None], own: str, size: Filling
) -> bool:
    """Say whether `thing`, built with `size` as `own` beside `read`, has a parameter with it."""
    values = {name: one.value(PROBED) for name, one in read.items() if one is not None}
    try:
        with undisturbed():
            built = materialised(thing(**{**values, own: size.value(PROBED)}), PROBED)
    except Exception:  # code that a user wrote may raise anything
        return False
    shapes = [one.shape for one in built.parameters()] if isinstance(built, nn.Module) else []
    return any(size.value(PROBED) in shape for shape in shapes)


def _sizes_left(component: str, read: Iterable[Filling | None]) -> list[str]:
    """Return the sizes that `component` needs and no argument that was read says."""
    known = sizes_known(read)
    needed = ["d_model", *(size for size, part in NEEDED.items() if part in inside(component))]
    return [size for size in needed if size not in known] or ["d_model"]
