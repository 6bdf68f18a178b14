"""The terminal's view of a training: last values, and curves at some steps."""

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from attentest.studies.learning.result import HEADINGS, Learning
from attentest.views.terminal import say

ROWS = 11
"""How many points of the curves are shown."""

OF_ENDS = (
    "training and held out are losses per token; tokens and sequences the shares that greedy "
    "decoding gets right of held-out questions; CPU the seconds of the processor."
)
CAVEAT = (
    "Learning is no proof of being right: many mistakes learn as well. `attentest run` judges them."
)


def show(console: Console, found: Learning) -> None:
    """Print the last values of the backends, their curves, notes, and failures."""
    say(console, _heading(found), "")
    if found.curves:
        console.print(_table(HEADINGS, found.ends()))
        say(
            console, "", OF_ENDS, "", f"Held-out loss and sequences right, by step{_of(found)}:", ""
        )
        console.print(_table(("step", *found.backends), steps(found)))
        say(console, "", *found.notes, *_choices(found), CAVEAT)
    else:
        say(console, *found.notes)
    for failure in found.failures:
        say(console, f"{failure.backend} was not trained: {failure.reason.rstrip('.')}.")


def steps(found: Learning) -> list[tuple[str, ...]]:
    """Return the curves at up to :data:`ROWS` points, as rows of text: means over the seeds."""
    points = found.curves[0].points
    shown = sorted({round(n * (len(points) - 1) / (ROWS - 1)) for n in range(ROWS)})
    return [
        (str(points[number].step), *(_point(found, name, number) for name in found.backends))
        for number in shown
    ]


def _point(found: Learning, name: str, number: int) -> str:
    loss, right = (found.spread(name, one, number).mean for one in ("validation", "sequences"))
    return f"{loss:.3f} {right:>5.0%}"


def _heading(found: Learning) -> str:
    regime, sizes = found.regime, found.regime["sizes"]
    rate = (
        f"the constant rate {regime['rate']:g}"
        if regime["rate"]
        else f"the paper's rate (warm-up {regime['warmup']})"
    )
    return (
        f"The task {regime['task']} of length {regime['length']}: {regime['steps']} steps of "
        f"{regime['batch']} fresh questions at {rate}, in {regime['precision']}; model width "
        f"{sizes['d_model']}, {sizes['heads']} heads, inner width {sizes['d_ff']}, layers "
        f"{sizes['layers']}."
    )


def _of(found: Learning) -> str:
    return f" (means over {len(found.seeds)} seeds)" if len(found.seeds) > 1 else ""


def _choices(found: Learning) -> list[str]:
    if len(found.backends) < 2:
        return []
    if not found.choices:
        return ["They declare the same choices."]
    return [f"They differ in {', '.join(found.choices)} (attentest explain CHOICE tells more)."]


def _table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    table = Table(box=None, pad_edge=False)
    for number, heading in enumerate(headings):
        table.add_column(Text(heading), justify="right" if number else "left", overflow="fold")
    for row in rows:
        table.add_row(*map(Text, row))
    return table
