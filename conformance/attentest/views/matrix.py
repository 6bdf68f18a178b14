"""The terminal's view of a run: the matrix, the verdicts that need words, and the choices."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from attentest.results.run import BackendRun, Run
from attentest.results.screen import Screen
from attentest.results.text import plain
from attentest.results.verdict import Status, Verdict
from attentest.views.coloured import coloured
from attentest_spec.choices import Value

MARKS = {
    Status.PASS: ("pass", "green"),
    Status.DEVIATION: ("deviates", "cyan"),
    Status.WARNING: ("warning", "yellow"),
    Status.VIOLATION: ("VIOLATES", "bold red"),
    Status.ERROR: ("ERROR", "bold red"),
    Status.TIMEOUT: ("TIMEOUT", "bold red"),
    Status.CRASH: ("CRASH", "bold red"),
    Status.ABSENT: ("-", "dim"),
    Status.SUITE_BUG: ("SUITE BUG", "bold magenta"),
}
"""The word and the style of each status; the word is enough without colour."""


def show(console: Console, run: Run, screen: Screen | None = None) -> None:
    """Print the matrix, then the causes of what fails, then the choices.

    A backend that could not be loaded is one line, and has no column.
    """
    failures = [f"{one.target}: not loaded: {one.failure}" for one in run if one.failure]
    loaded = replace(run, backends=tuple(one for one in run if not one.failure))
    if loaded.backends:
        console.print(matrix(loaded))
        console.print()
    for name, command in run.not_installed.items():
        console.print(Text(f"{name}: not installed; {command}", style="dim"), soft_wrap=True)
    if run.not_installed:
        console.print()
    if loaded.backends:
        _show_words(console, loaded, screen or Screen(console.width))
    for line in failures:
        console.print(Text(line, style="bold red"), soft_wrap=True)


def _show_words(console: Console, run: Run, screen: Screen) -> None:
    for backend in run:
        for paragraph in screen.paragraphs(backend):
            console.print(coloured(paragraph), soft_wrap=True)
            console.print()
    console.print(choices_table(run))
    console.print()
    for line in ["measured, not judged", *measured_lines(run), ""]:
        console.print(Text(line), soft_wrap=True)
    for backend in run:
        console.print(coloured(screen.end(backend, run.plan)), soft_wrap=True)


def matrix(run: Run) -> Table:
    """Return the table of clauses by backends, grouped by chapter, with a summary row."""
    table = Table(box=None, pad_edge=False, show_footer=True, padding=(0, 2, 0, 0))
    table.add_column("clause", footer="conforms", no_wrap=True, overflow="ellipsis")
    for backend in run:
        score = "{}/{}".format(*backend.score)
        heading = escape(label(backend.target, run.targets))
        table.add_column(heading, footer=score, min_width=max(8, len(score)))
    columns = [backend.by_clause for backend in run]
    chapter = ""
    for slug in run.plan.clauses:
        clause = run.clauses[slug]
        if clause["chapter"] != chapter:
            chapter = clause["chapter"]
            table.add_row(Text(chapter, style="bold underline"))
        name = slug.partition(".")[2] + ("" if clause["level"] == "MUST" else " (should)")
        table.add_row(Text(f"  {name}"), *(_mark(column.get(slug)) for column in columns))
    return table


def label(target: str, targets: Sequence[str]) -> str:
    """Return the heading of a backend's column: of a path the last part, where that is unique."""
    short = _last_part(target)
    unique = [_last_part(one) for one in targets].count(short) == 1
    return plain(short if unique else target)


def _last_part(target: str) -> str:
    return target.replace("\\", "/").rpartition("/")[2]


def _mark(verdict: Verdict | None) -> Text:
    if verdict is None:
        return Text("")
    word, style = MARKS[verdict.status]
    return Text(word, style=style)


def choices_table(run: Run) -> Table:
    """Return the choices side by side, the paper's column first, deviations marked."""
    table = Table(
        title="choices",
        title_justify="left",
        caption="* another option than the paper's, declared and shown by the numbers",
        caption_justify="left",
        box=None,
        pad_edge=False,
    )
    table.add_column("choice", no_wrap=True)
    for heading in ("paper", *(escape(label(name, run.targets)) for name in run.targets)):
        table.add_column(heading, overflow="fold")
    for choice in run.choices.values():
        paper = "(silent)" if choice["paper"] is None else choice["paper"]
        table.add_row(choice["name"], paper, *(_choice(backend, choice) for backend in run))
    return table


def measured_lines(run: Run) -> list[str]:
    """Return what was measured and is not judged, a line per backend and statement."""
    return [
        f"{backend.target}: {name}: {statement}"
        for backend in run
        for name, statement in backend.measured.items()
    ]


def _choice(backend: BackendRun, choice: Mapping[str, Any]) -> Text:
    """Return what a backend declares for a choice; a star where the numbers show a deviation."""
    value = backend.description.choices.get(choice["name"])
    verdict = backend.by_clause.get(choice["clause"])
    status = verdict.status if verdict else Status.ABSENT
    shown = _value(value, "as the paper" if choice["paper"] else "undeclared")
    if verdict and value is None and choice["paper"] is None and verdict.measured is not None:
        shown = f"{_value(verdict.measured)} (measured)"
    if status is Status.DEVIATION:
        return Text(f"{shown} *", style="cyan")
    if status.fails:
        return Text(f"{shown} (not shown by the numbers)", style="bold red")
    return Text(shown if status.judged or value is not None else "-")


def _value(value: Value | None, missing: str = "") -> str:
    if value is None:
        return missing
    return f"{value:g}" if isinstance(value, float) else str(value)
