"""The terminal's view of a sweep: cells, effects, and what failed."""

from collections import Counter
from collections.abc import Mapping, Sequence

from rich.console import Console
from rich.table import Table

from attentest.studies.sweep.effects import CONFIDENCE, FEWEST, MEASURES, Effect
from attentest.studies.sweep.sweep import COLUMNS, Sweep
from attentest.views.terminal import say
from attentest_spec.choices import Value

OF_CELLS = (
    "held out is the loss per token of held-out questions at the end; tokens and sequences are the "
    "shares of them that greedy decoding gets right. Below a mean is the range over the seeds."
)
CAVEAT = "These are small models on a small task: what holds here may not hold at a larger size."

OF_PAIRS = MEASURES[0]
"""The measure whose interactions are shown; the result file has those of all."""

NO_DIFFERENCE = "no difference seen at this size"


def show(console: Console, found: Sweep) -> None:
    """Print the cells of a sweep, the effects of its factors, and the trainings that failed."""
    console.print(_table(found.headings, found.rows()))
    say(console, "", OF_CELLS)
    for measure in MEASURES:
        _effects(console, f"Effects on {COLUMNS[measure][0]}", found.effects(measure))
    _effects(console, f"Interactions in {COLUMNS[OF_PAIRS][0]}", found.interactions(OF_PAIRS))
    if any(one.seen is None for one in found.effects()):
        say(console, "", f"An interval needs {FEWEST} seeds.")
    say(console, "", CAVEAT)
    reasons = Counter((_levels(one.levels), one.reason.rstrip(".")) for one in found.failures)
    for (levels, reason), count in reasons.items():
        failed = f"failed with {count} seed{'s' if count > 1 else ''}"
        say(console, f"{levels or found.grid.target} {failed}: {reason}.")


def _effects(console: Console, heading: str, effects: Sequence[Effect]) -> None:
    if effects:
        say(console, "", f"{heading}{_of(effects)}:", "")
        console.print(_table(("level", "instead of", "difference", "interval"), _rows(effects)))


def difference(effect: Effect) -> str:
    """Return the difference in the unit of its measure."""
    _, scale, digits, unit = COLUMNS[effect.measure]
    return f"{effect.difference * scale:+.{digits}f}{unit}"


def interval(effect: Effect) -> str:
    """Return the interval, or that it holds 0; "" where there is none."""
    if effect.low is None or effect.high is None:
        return ""
    _, scale, digits, unit = COLUMNS[effect.measure]
    bounds = f"{effect.low * scale:+.{digits}f}..{effect.high * scale:+.{digits}f}{unit}"
    return bounds if effect.seen else f"{bounds}: {NO_DIFFERENCE}"


def _rows(effects: Sequence[Effect]) -> list[tuple[str, ...]]:
    return [
        (_levels(one.levels), _levels(one.base), difference(one), interval(one)) for one in effects
    ]


def _levels(levels: Mapping[str, Value]) -> str:
    return "\n".join(f"{name}={one}" for name, one in levels.items())


def _of(effects: Sequence[Effect]) -> str:
    seeds = max(one.seeds for one in effects)
    return f", mean over {seeds} seeds with {CONFIDENCE:.0%} intervals" if seeds > 1 else ""


def _table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for heading in headings:
        table.add_column(heading, overflow="fold")
    for row in rows:
        table.add_row(*row)
    return table
