"""The picture of the silent-bug index: for every task and component, what shows the mistakes."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from attentest.studies.index.evidence import Evidence
from attentest.views.plots.drawing import COLOURS, GREY, LEGEND, figure, style_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH = 6.8

ROW = 0.26
"""Inches for each bar."""

_COLOURS = dict(
    zip(Evidence, (COLOURS[5], COLOURS[0], COLOURS[4], COLOURS[2], GREY, "#c0c0c0"), strict=True)
)

Counts = Mapping[str, Mapping[str, int]]


def evidence_bars(found: Mapping[str, Any]) -> "Figure":
    """Return the shares of mistakes by what shows them, of an index as plain values."""
    by_component: dict[str, dict[str, int]] = {}
    for one in found["mistakes"]:
        counts = by_component.setdefault(one["component"], dict.fromkeys(map(str, Evidence), 0))
        counts[one["evidence"]] += 1
    groups: tuple[Counts, ...] = ({"all": found["counts"], **found["by_task"]}, by_component)
    heights = [ROW * (len(one) + 2) for one in groups]
    whole = figure(WIDTH, sum(heights) + 0.6)
    panels = whole.subplots(len(groups), 1, gridspec_kw={"height_ratios": heights})
    for axes, group in zip(panels, groups, strict=True):
        _bars(style_axes(axes), group)
    panels[-1].set_xlabel("mistakes (%)", color=GREY)
    handles, labels = panels[0].get_legend_handles_labels()
    whole.legend(handles, labels, loc="outside upper center", ncols=3, **LEGEND)
    return whole


def _bars(axes: "Axes", group: Counts) -> None:
    names = [f"{name.replace('_', ' ')} ({sum(counts.values())})" for name, counts in group.items()]
    left = [0.0] * len(names)
    for kind in Evidence:
        shares = [100 * one[str(kind)] / max(1, sum(one.values())) for one in group.values()]
        axes.barh(names, shares, left=left, color=_COLOURS[kind], label=str(kind))
        left = [start + share for start, share in zip(left, shares, strict=True)]
    axes.set_xlim(0, 100)
    axes.invert_yaxis()
