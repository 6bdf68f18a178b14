"""Costs and training in a report: curves as figures, and tables of the numbers."""

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from attentest.results.optional import needed
from attentest.results.text import line
from attentest.views.html.figures import inline
from attentest.views.matrix import label
from attentest.views.plots.drawing import literal

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Result = Mapping[str, Any]


@dataclass(frozen=True)
class Table:
    """Numbers under their headings; the first cell of a row is its name."""

    title: str
    headings: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]


@dataclass(frozen=True)
class Plotted:
    """One result file: its figures as SVG, and its tables, the first of which is shown at once."""

    title: str
    figures: tuple[str, ...]
    tables: tuple[Table, ...]
    notes: tuple[str, ...]
    failures: tuple[Mapping[str, Any], ...]


def learned(found: Result, number: int) -> Plotted:
    """Return the result of training; `number` makes its ids unique on the page."""
    from attentest.views.plots.learning import accuracy_curves, gradient_curves, loss_curves

    about = f"task {found['regime']['task']}"
    plots = {"Loss": loss_curves, "Accuracy": accuracy_curves}
    if any(one["points"][-1].get("gradients") for one in found["curves"]):
        plots["Norms of gradients"] = gradient_curves
    return Plotted(
        f"Learning, {about}",
        figures(found, plots, f"learning-{number}", about),
        (_ends(found["curves"]), _points(found["curves"])),
        tuple(found["notes"]),
        tuple(found["failures"]),
    )


def _ends(curves: Sequence[Result]) -> Table:
    fields = ("step", "validation", "tokens", "sequences")
    return Table(
        "Where it ends",
        ("backend", "seed", "steps", "loss", "tokens right", "sequences right", "seconds"),
        tuple(
            (one["backend"], one["seed"], *map(one["points"][-1].get, fields), one["seconds"])
            for one in curves
        ),
    )


def _points(curves: Sequence[Result]) -> Table:
    fields = ("step", "training", "validation", "tokens", "sequences")
    return Table(
        "Step by step",
        ("backend", "seed", "step", "loss trained on", "loss", "tokens right", "sequences right"),
        tuple(
            (one["backend"], one["seed"], *map(point.get, fields))
            for one in curves
            for point in one["points"]
        ),
    )


def costs(found: Result, number: int) -> Plotted:
    """Return the measured cost; `number` makes its ids unique on the page."""
    from attentest.views.plots.cost import memory, ratios, times

    about = str(found["plan"]["component"]).replace("_", " ")
    plots = {"Time": times, "Time against the first": ratios, "Memory": memory}
    tables = (_measured(found), _growth(found), _parameters(found), _layers(found))
    return Plotted(
        f"Cost of the {about}",
        figures(found, plots, f"cost-{number}", about),
        tuple(one for one in tables if one.rows),
        tuple(found["plan"]["notes"]),
        tuple(found["failures"]),
    )


def _measured(found: Result) -> Table:
    headings = ("backend", "length", "width", "pass", "milliseconds", "quartiles", "ratio")
    return Table(
        "Time, memory and operations",
        (*headings, "memory, MiB", "million FLOPs", "counted"),
        tuple(
            (
                *(one[name] for name in ("backend", "length", "width", "which")),
                1e3 * one["seconds"]["median"],
                f"{1e3 * one['seconds']['low']:.3g} to {1e3 * one['seconds']['high']:.3g}",
                one["ratio"]["median"],
                _per(one["memory"] and one["memory"]["median"], 2**20),
                _per(one["flops"], 10**6),
                _per(one["counted"], 10**6),
            )
            for one in found["measurements"]
        ),
    )


def _per(value: float | None, unit: int) -> float | None:
    return None if value is None else value / unit


def _growth(found: Result) -> Table:
    fields = ("backend", "over", "which", "quantity", "exponent", "error")
    return Table(
        "Growth: the exponent between the two largest sizes",
        ("backend", "over", "pass", "of", "exponent", "error"),
        tuple(tuple(map(one.get, fields)) for one in found["growths"]),
    )


def _parameters(found: Result) -> Table:
    fields = ("backend", "width", "counted", "expected")
    return Table(
        "Parameters: counted, and by the specification",
        ("backend", "width", "counted", "by the specification"),
        tuple(tuple(map(one.get, fields)) for one in found["parameters"]),
    )


def _layers(found: Result) -> Table:
    fields = ("layer", "complexity", "operations", "sequential", "path")
    return Table(
        "Table 1 of the paper at the longest length",
        ("layer", "complexity", "in numbers", "sequential operations", "longest path"),
        tuple(tuple(map(one.get, fields)) for one in found["layers"]),
    )


def figures(
    found: Result, plots: Mapping[str, Callable[[Result], "Figure"]], name: str, about: str
) -> tuple[str, ...]:
    """Return the figures of a result, whose ids begin with `name`; `about` is in their titles."""
    needed("matplotlib")
    shown = _literal(found, _labels(found.get("backends", ())))
    with warnings.catch_warnings():
        # A letter that the font lacks is drawn by the reader's browser, which has others.
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        return tuple(
            inline(plot(shown), f"{name}-{place}", f"{title}, {about}")
            for place, (title, plot) in enumerate(plots.items())
        )


def _labels(names: Sequence[str]) -> dict[str, str]:
    """Return a short label for each name, the names themselves where two would get the same."""
    short = {name: line(label(name, names), 30) for name in names}
    return short if len(set(short.values())) == len(short) else {name: name for name in names}


def _literal(value: Any, labels: Mapping[str, str]) -> Any:
    """Return `value` with labels for names, and every other text as matplotlib shows it.

    The names are left to those who draw them.
    """
    match value:
        case str():
            return labels[value] if value in labels else literal(value)
        case dict():
            return {_literal(name, labels): _literal(one, labels) for name, one in value.items()}
        case list():
            return [_literal(one, labels) for one in value]
        case _:
            return value


def numbers(row: Sequence[Any]) -> list[str]:
    """Return the cells of a row, numbers as short as they can be read and "-" for none."""
    return ["-" if one is None else _number(one) for one in row]


def _number(one: Any) -> str:
    return f"{one:.4g}" if isinstance(one, float) else str(one)
