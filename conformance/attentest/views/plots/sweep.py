"""The picture of a sweep: the effect of every level, with its interval."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from attentest.views.plots.drawing import COLOURS, GREY, figure, literal, style_axes

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WIDTH = 6.4

ROW = 0.32
"""Inches for each level."""

_UNITS = {"validation": ("held-out loss per token", 1), "sequences": ("sequences right (%)", 100)}


def effects(found: Mapping[str, Any]) -> "Figure":
    """Return the main effects of a sweep as plain values (`Sweep.as_dict()`), a panel a measure."""
    rows = max(1, len(found["effects"]) // 3)
    whole = figure(WIDTH, (1.2 + ROW * rows) * len(_UNITS))
    panels = whole.subplots(len(_UNITS), 1, squeeze=False)[:, 0]
    for axes, (measure, (meaning, scale)) in zip(panels, _UNITS.items(), strict=True):
        style_axes(axes)
        shown = [one for one in found["effects"] if one["measure"] == measure]
        names = [_name(one["levels"]) for one in shown]
        for place, one in enumerate(shown):
            low, high = (
                one["difference"] if end is None else end for end in (one["low"], one["high"])
            )
            axes.plot([low * scale, high * scale], [place, place], color=COLOURS[0])
            axes.plot(one["difference"] * scale, place, "o", color=COLOURS[0])
        axes.axvline(0, color=GREY, linewidth=1)
        axes.set_yticks(range(len(names)), [literal(name) for name in names])
        axes.invert_yaxis()
        axes.set_xlabel(f"difference in {meaning}", color=GREY)
    return whole


def _name(levels: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={one}" for name, one in levels.items())
