"""The terminal's view of a training: last values, and curves at some steps."""

from collections.abc import Mapping, Sequence
from statistics import fmean as mean
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from attentest.studies.learning.parts import PARTS
from attentest.studies.learning.regime import ENCODER_DECODER, Regime
from attentest.studies.learning.result import Curve, Learning
from attentest.studies.learning.tasks import TASKS
from attentest.views.terminal import say

ROWS = 11
"""The number of points of the curves that are shown."""

OF_ENDS = (
    "training and held out are losses per token; tokens and sequences the shares that greedy "
    "decoding gets right of held-out questions; CPU the seconds of the processor."
)
CAVEAT = (
    "Learning is no proof of being right: many mistakes learn as well. `attentest run` judges them."
)


COLUMNS = 6
"""The number of steps that the table of gradients shows."""

RIGHT = {"trained": 0.99, "sequences": 0.95}
"""The shares from which on questions count as right, of those trained on and those held out."""


def show(console: Console, found: Learning, *, gradients: bool = False) -> None:
    """Print the last values of the backends, their curves, notes, and failures.

    With `gradients`, also their norms by part and step.
    """
    say(console, _heading(found), "")
    if found.curves:
        console.print(_table(found.headings, found.ends()))
        say(
            console, "", OF_ENDS, "", f"Held-out loss and sequences right, by step{_of(found)}:", ""
        )
        console.print(_table(("step", *found.backends), steps(found)))
        for name in found.backends if gradients else ():
            headings, rows = gradient_table(found, name)
            say(console, "", f"Norms of the gradients of {name}, by part and step{_of(found)}:", "")
            console.print(_table(headings, rows))
        notes = (*found.notes, *turns(found), *_parts(found), *_choices(found))
        say(console, "", *notes, CAVEAT)
    else:
        say(console, *found.notes)
    for failure in found.failures:
        say(console, f"{failure.backend} was not trained: {failure.reason.rstrip('.')}.")


def steps(found: Learning) -> list[tuple[str, ...]]:
    """Return the curves at up to :data:`ROWS` points, as rows of text: means over the seeds."""
    points = found.curves[0].points
    return [
        (str(points[number].step), *(_point(found, name, number) for name in found.backends))
        for number in _some(len(points), ROWS)
    ]


def gradient_table(found: Learning, backend: str) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Return the norms of a backend's gradients as headings and rows: means over the seeds.

    A norm is a mean over the steps since the last point.
    """
    curves = [one.points[1:] for one in found.of(backend)]
    shown = _some(len(curves[0]), COLUMNS)
    rows = [
        (part, *(f"{mean(one[number].gradients[part] for one in curves):.3g}" for number in shown))
        for part in curves[0][0].gradients
    ]
    return ("part", *(str(curves[0][number].step) for number in shown)), rows


def _some(count: int, most: int) -> list[int]:
    """Return up to `most` numbers below `count`, evenly, the first and the last among them."""
    return sorted({round(n * (count - 1) / (most - 1)) for n in range(most)})


def turns(found: Learning) -> list[str]:
    """Return when training and held-out questions became right, for a task that has few."""
    return [_turn(one, found) for one in found.curves if one.points[-1].trained is not None]


def _turn(curve: Curve, found: Learning) -> str:
    name = f"{curve.backend}, seed {curve.seed}," if len(found.seeds) > 1 else curve.backend
    trained, held_out = (curve.first(measure, share) for measure, share in RIGHT.items())
    return (
        f"{name} has {RIGHT['trained']:.0%} of the training questions right {_from(trained)}, and "
        f"{RIGHT['sequences']:.0%} of the held-out ones {_from(held_out)}."
    )


def _from(step: int | None) -> str:
    return "at no point" if step is None else f"from step {step:,} on"


def _parts(found: Learning) -> list[str]:
    """Return which parts of the training were a backend's own, in sentences."""
    sentences = []
    for name in found.backends:
        origin = found.of(name)[0].parts
        words = {**PARTS, "greedy_decoding": "decoding"}
        if origin:
            parts = "; ".join(f"{words[part]} {whose}" for part, whose in origin.items())
            sentences.append(f"{name} trains with: {parts}.")
    return sentences


def _point(found: Learning, name: str, number: int) -> str:
    loss, right = (found.spread(name, one, number).mean for one in ("validation", "sequences"))
    return f"{loss:.3f} {right:>5.0%}"


def _heading(found: Learning) -> str:
    regime, sizes = found.regime, found.regime["sizes"]
    few = TASKS[regime["task"]].every is not None
    questions = "all training questions" if few else f"{regime['batch']} fresh questions"
    return (
        f"The task {regime['task']} of length {regime['length']}: {regime['steps']} steps of "
        f"{questions} at {_rate(regime)}, in {regime['precision']}; {_kind(regime)}model width "
        f"{sizes['d_model']}, {sizes['heads']} heads, inner width {sizes['d_ff']}, layers "
        f"{sizes['layers']}{_settings(regime)}."
    )


def _kind(regime: Mapping[str, Any]) -> str:
    """Return the kind of the model where it is not the usual one."""
    kind = regime.get("model", ENCODER_DECODER)
    return "" if kind == ENCODER_DECODER else f"{kind} "


def _rate(regime: Mapping[str, Any]) -> str:
    if regime["rate"]:
        return f"the constant rate {regime['rate']:g}"
    factor = "" if regime["factor"] == 1 else f"factor {regime['factor']:g}, "
    schedule = regime["schedule"]
    name = "the paper's rate" if schedule == "noam" else f"the {schedule} schedule"
    return f"{name} ({factor}warm-up {regime['warmup']})"


def _settings(regime: Mapping[str, Any]) -> str:
    """Return the settings of loss and optimiser that are not the usual ones."""
    usual = Regime()
    words = {
        "smoothing": "label smoothing",
        "beta1": "beta1",
        "beta2": "beta2",
        "epsilon": "epsilon",
        "weight_decay": "weight decay",
        "clip": "gradients clipped at",
    }
    return "".join(
        f"; {text} {regime[name]:g}"
        for name, text in words.items()
        if regime[name] != getattr(usual, name)
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
