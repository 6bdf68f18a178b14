"""Pictures of learning curves, from a result as plain values (`Learning.as_dict()`).

Each backend has a colour and a style of line; a band spans the seeds.
"""

from collections.abc import Mapping, Sequence
from statistics import mean
from typing import TYPE_CHECKING, Any

from attentest.views.plots.drawing import COLOURS, GREY, LEGEND, figure, literal, style_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

STYLES = ("-", "--", "-.", ":")

WIDTH, HEIGHT = 6.4, 3.6
"""Inches of one panel."""

Result = Mapping[str, Any]


def loss_curves(found: Result) -> "Figure":
    """Return the losses by step: on held-out questions, and faintly on those trained on."""
    whole, (axes,) = _panels(1)
    _losses(axes, found)
    return whole


def accuracy_curves(found: Result) -> "Figure":
    """Return the shares of held-out sequences that greedy decoding gets right, by step."""
    whole, (axes,) = _panels(1)
    _accuracies(axes, found)
    return whole


def gradient_curves(found: Result) -> "Figure":
    """Return the norms of the gradients by step, a panel for each backend, a line for each part."""
    names = _with_gradients(found)
    whole, panels = _panels(max(1, len(names)), height=1.4)
    _gradients(panels, found, names)
    return whole


def learning_curves(found: Result, *, gradients: bool = False) -> "Figure":
    """Return losses and accuracies in one picture, and perhaps the norms of gradients."""
    names = _with_gradients(found) if gradients else []
    whole, (above, below, *rest) = _panels(2 + len(names))
    _losses(above, found)
    _accuracies(below, found)
    _gradients(rest, found, names)
    return whole


def _with_gradients(found: Result) -> list[str]:
    """Return the backends whose gradients are known: files of earlier versions have none."""
    curves = found["curves"]
    return [
        name
        for name in found["backends"]
        if any(one["backend"] == name and one["points"][-1].get("gradients") for one in curves)
    ]


def _gradients(panels: Sequence["Axes"], found: Result, names: Sequence[str]) -> None:
    for axes, name in zip(panels, names, strict=False):
        curves = [one["points"][1:] for one in found["curves"] if one["backend"] == name]
        for number, part in enumerate(curves[0][0]["gradients"]):
            axes.plot(
                [point["step"] for point in curves[0]],
                [mean(one["gradients"][part] for one in at) for at in zip(*curves, strict=True)],
                STYLES[number // len(COLOURS) % len(STYLES)],
                color=COLOURS[number % len(COLOURS)],
                label=literal(part),
            )
        axes.set_yscale("log")
        axes.set_xlabel("step", color=GREY)
        axes.set_ylabel(literal(f"norm of gradients, {name}"), color=GREY)
        axes.legend(**LEGEND, fontsize="x-small", loc="center left", bbox_to_anchor=(1.0, 0.5))


def _panels(rows: int, height: float = 1.0) -> tuple["Figure", Sequence["Axes"]]:
    whole = figure(WIDTH, HEIGHT * rows * height)
    panels = whole.subplots(rows, 1, squeeze=False)[:, 0]
    return whole, [style_axes(axes) for axes in panels]


def _losses(axes: "Axes", found: Result) -> None:
    _draw(axes, found, "training", faint=True)
    _draw(axes, found, "validation")
    axes.set_yscale("log")
    _label(axes, "loss per token (held out; faint: trained on)")


def _accuracies(axes: "Axes", found: Result) -> None:
    few = any(_known([one["points"][-1]], "trained") for one in found["curves"])
    if few:
        _draw(axes, found, "trained", faint=True)
    _draw(axes, found, "sequences")
    axes.set_ylim(-0.03, 1.03)
    _label(axes, "held-out sequences right" + " (faint: trained on)" * few)


def _label(axes: "Axes", what: str) -> None:
    axes.set_xlabel("step", color=GREY)
    axes.set_ylabel(what, color=GREY)
    if axes.lines:
        axes.legend(**LEGEND)


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
            label=None if faint else literal(name),
        )
        if len(curves) > 1 and not faint:
            low, high = ([side(several) for several in values] for side in (min, max))
            axes.fill_between(steps, low, high, color=colour, alpha=0.2, linewidth=0)


def _known(several: Sequence[Result], measure: str) -> bool:
    return all(one.get(measure) is not None for one in several)
