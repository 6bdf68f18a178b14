"""Pictures of learning curves, from a result as plain values (`Learning.as_dict()`).

They have no background of their own and mid-grey axes, and can be read on light and on dark pages.
Each backend has a colour and a style of line; a band spans the seeds.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import mean
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = ("#e69f00", "#56b4e9", "#009e73", "#d55e00", "#cc79a7", "#7a7aff")
"""Colours that can be told apart by the colour-blind, after Okabe and Ito; black is left out."""

STYLES = ("-", "--", "-.", ":")

GREY = "#808080"
SIZE = (6.4, 3.6)

Result = Mapping[str, Any]


def loss_curves(found: Result) -> "Figure":
    """Return the losses by step: on held-out questions, and faintly on those trained on."""
    figure, (axes,) = _figure(1)
    _losses(axes, found)
    return figure


def accuracy_curves(found: Result) -> "Figure":
    """Return the shares of held-out sequences that greedy decoding gets right, by step."""
    figure, (axes,) = _figure(1)
    _accuracies(axes, found)
    return figure


def learning_curves(found: Result) -> "Figure":
    """Return losses and accuracies in one picture."""
    figure, (above, below) = _figure(2)
    _losses(above, found)
    _accuracies(below, found)
    return figure


def save(figure: "Figure", path: Path) -> None:
    """Write `figure` as the ending of `path` says, such as .svg or .png; text stays text."""
    from matplotlib import rc_context

    with rc_context({"svg.fonttype": "none", "svg.hashsalt": "attentest"}):
        figure.savefig(path, transparent=True)


def _figure(rows: int) -> tuple["Figure", Sequence["Axes"]]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(SIZE[0], SIZE[1] * rows), layout="constrained")
    figure.patch.set_alpha(0.0)
    panels = figure.subplots(rows, 1, squeeze=False)[:, 0]
    for axes in panels:
        axes.patch.set_alpha(0.0)
        axes.tick_params(colors=GREY)
        axes.grid(color=GREY, alpha=0.25)
        for side, spine in axes.spines.items():
            spine.set_color(GREY)
            spine.set_visible(side in ("left", "bottom"))
    return figure, list(panels)


def _losses(axes: "Axes", found: Result) -> None:
    _draw(axes, found, "training", faint=True)
    _draw(axes, found, "validation")
    axes.set_yscale("log")
    _label(axes, "loss per token (held out; faint: trained on)")


def _accuracies(axes: "Axes", found: Result) -> None:
    _draw(axes, found, "sequences")
    axes.set_ylim(-0.03, 1.03)
    _label(axes, "held-out sequences right")


def _label(axes: "Axes", what: str) -> None:
    axes.set_xlabel("step", color=GREY)
    axes.set_ylabel(what, color=GREY)
    if axes.lines:
        axes.legend(frameon=False, labelcolor=GREY)


def _draw(axes: "Axes", found: Result, measure: str, *, faint: bool = False) -> None:
    for number, name in enumerate(found["backends"]):
        colour, style = COLOURS[number % len(COLOURS)], STYLES[number % len(STYLES)]
        curves = [one["points"] for one in found["curves"] if one["backend"] == name]
        points = [several for several in zip(*curves, strict=True) if _known(several, measure)]
        steps = [several[0]["step"] for several in points]
        values = [[one[measure] for one in several] for several in points]
        axes.plot(
            steps,
            [mean(several) for several in values],
            style,
            color=colour,
            alpha=0.35 if faint else 1.0,
            label=None if faint else name,
        )
        if len(curves) > 1 and not faint:
            low, high = ([side(several) for several in values] for side in (min, max))
            axes.fill_between(steps, low, high, color=colour, alpha=0.2, linewidth=0)


def _known(several: Sequence[Result], measure: str) -> bool:
    return all(one[measure] is not None for one in several)
