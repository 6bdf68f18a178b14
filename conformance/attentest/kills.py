"""The terminal's view of the suite's own score."""

from collections.abc import Iterable

from rich.console import Console
from rich.table import Table
from rich.text import Text

from attentest.score import Score
from attentest_spec import COMPONENTS
from attentest_spec.names import require


def choose(slugs: Iterable[str], components: Iterable[str]) -> list[str]:
    """Return the faults `slugs` of `components`; empty means all.

    Raises UnknownName with the nearest names for one that is none.
    """
    from attentest.faults import faults

    named = [require("fault", slug, faults()) for slug in slugs]
    wanted = [require("component", name, COMPONENTS) for name in components]
    return [
        slug
        for slug, fault in faults().items()
        if (not named or slug in named) and (not wanted or set(fault.changes) & set(wanted))
    ]


def show(console: Console, score: Score) -> None:
    """Print the kill matrix, every error of the suite, and the score with its denominators."""
    console.print(_table(score))
    console.print()
    for heading, lines in _errors(score).items():
        if lines:
            console.print(Text(f"{heading}:", style="bold red"))
            for line in lines:
                console.print(Text(f"  {line}"), soft_wrap=True)
    total = len(score.killed) + len(score.survived)
    console.print(
        f"{len(score.killed)} of {total} faults killed by their own clause, "
        f"{len(score.trials)} plantings, {len(score.spurious)} false alarms, "
        f"{len(score.idle)} clauses without a kill"
    )


def _table(score: Score) -> Table:
    """Return one row per fault: its own clause, whether it killed, and how many noticed."""
    from attentest.faults import fault_of

    table = Table(box=None, pad_edge=False)
    for heading in ("fault", "own clause", "killed", "noticed by"):
        table.add_column(heading, no_wrap=heading != "noticed by")
    noticed: dict[str, set[str]] = {}
    for trial in score.trials:
        noticed.setdefault(trial.fault, set()).update(trial.tripped())
    for slug, clauses in noticed.items():
        killed = Text("yes", "green") if slug in score.killed else Text("NO", "bold red")
        table.add_row(slug, fault_of(slug).clause, killed, f"{len(clauses)} clauses")
    return table


def _errors(score: Score) -> dict[str, list[str]]:
    return {
        "survived its own clause": score.survived,
        "clauses that kill no fault of their own": score.idle,
        "tripped over a fault that cannot reach them": [
            f"{clause} by {fault}" for fault, clause in score.spurious
        ],
    }
