"""The terminal's view of a run: the matrix, the causes of what fails, and the choices."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rich.console import Console
from rich.text import Text

from attentest.results.causes import consequences
from attentest.results.run import BackendRun, Run, score
from attentest.results.screen import Screen
from attentest.results.text import plain
from attentest.results.verdict import Status, Verdict
from attentest.results.wording import PAPER
from attentest.views.coloured import coloured
from attentest.views.tables import Row, tables
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

FOLLOWS = ("follows", "red")
"""The same for a clause that fails because another one does."""


def show(console: Console, run: Run, screen: Screen | None = None, *, every: bool = False) -> None:
    """Print the matrix, then the causes of what fails, then the choices.

    `every` clause and choice has its row, not only those that need attention, and what is measured
    and not judged follows. A backend that could not be loaded is one line, and has no column.
    """
    failures = [f"{one.target}: not loaded: {one.failure}" for one in run if one.failure]
    loaded = replace(run, backends=tuple(one for one in run if not one.failure))
    if loaded.backends:
        Matrix(loaded, every).show(console)
    for name, command in run.not_installed.items():
        console.print(Text(f"{name}: not installed; {command}", style="dim"), soft_wrap=True)
    if run.not_installed:
        console.print()
    if loaded.backends:
        _show_words(console, loaded, screen or Screen(console.width), every=every)
    for line in failures:
        console.print(Text(line, style="bold red"), soft_wrap=True)


def _show_words(console: Console, run: Run, screen: Screen, *, every: bool) -> None:
    for backend in run:
        paragraphs = list(screen.paragraphs(backend))
        if paragraphs and len(run.backends) > 1:
            console.print(Text(backend.target, style="bold underline"), soft_wrap=True)
        for paragraph in paragraphs:
            console.print(coloured(paragraph), soft_wrap=True)
            console.print()
    Choices(run, every).show(console)
    if every:
        for line in ["measured, not judged", *measured_lines(run), ""]:
            console.print(Text(line), soft_wrap=True)
    for backend in run:
        console.print(coloured(screen.end(backend, run.plan)), soft_wrap=True)


@dataclass(frozen=True)
class Matrix:
    """The table of clauses by backends: a row with counts for each chapter, and clauses below it.

    Unless `every` clause is shown, they are those in which a backend does not conform by itself,
    and chapters by which no backend is judged are left out.
    What fails because another clause does is counted.
    """

    run: Run
    every: bool = False

    def show(self, console: Console) -> None:
        """Print it as several tables, where the terminal is too narrow for one."""
        for table in tables("clause", self.headings(), list(self.rows()), console.width):
            console.print(table)
            console.print()

    def headings(self) -> list[str]:
        """Return the heading of each column."""
        return [label(one, self.run.targets) for one in self.run.targets]

    def rows(self) -> Iterator[Row]:
        """Yield the rows from top to bottom; the last one has the scores."""
        follows = [consequences(one.verdicts) for one in self.run]
        columns = [one.by_clause for one in self.run]
        for chapter, slugs in self._chapters().items():
            counts = [_counts(column[one] for one in slugs if one in column) for column in columns]
            if not self.every and set(counts) == {"-"}:
                continue
            yield Row(chapter, list(map(Text, counts)), "bold")
            hidden = []
            for slug in slugs:
                pairs = [
                    (column.get(slug), slug in following)
                    for column, following in zip(columns, follows, strict=True)
                ]
                if self.every or any(map(_needs_attention, *zip(*pairs, strict=True))):
                    yield Row(self._name(slug), [_mark(*one) for one in pairs])
                elif any(following for _, following in pairs):
                    hidden.append([following for _, following in pairs])
            if hidden:
                numbers = [sum(column) for column in zip(*hidden, strict=True)]
                cells = [Text(f"{one} follow" if one else "", FOLLOWS[1]) for one in numbers]
                yield Row(f"  ({len(hidden)} more)", cells)
        scores = [Text("{}/{}".format(*one.score)) for one in self.run]
        yield Row("conforms", scores, "bold")

    def _chapters(self) -> dict[str, list[str]]:
        """Return the clauses of each chapter, whatever the order in which they were judged."""
        found: dict[str, list[str]] = {}
        for slug in self.run.plan.clauses:
            found.setdefault(str(self.run.clauses[slug]["chapter"]), []).append(slug)
        return found

    def _name(self, slug: str) -> str:
        should = "" if self.run.clauses[slug]["level"] == "MUST" else " (should)"
        return f"  {slug.partition('.')[2]}{should}"


def _needs_attention(verdict: Verdict | None, follows: bool) -> bool:
    return verdict is not None and verdict.status.needs_words and not follows


def _counts(verdicts: Iterable[Verdict]) -> str:
    conforming, judged = score(verdicts)
    return f"{conforming}/{judged}" if judged else "-"


def label(target: str, targets: Sequence[str]) -> str:
    """Return the heading of a backend's column: of a path the last part, where that is unique."""
    short = _last_part(target)
    unique = [_last_part(one) for one in targets].count(short) == 1
    return plain(short if unique else target)


def _last_part(target: str) -> str:
    return target.replace("\\", "/").rpartition("/")[2]


def _mark(verdict: Verdict | None, follows: bool = False) -> Text:
    if verdict is None:
        return Text("")
    word, style = FOLLOWS if follows else MARKS[verdict.status]
    return Text(word, style=style)


@dataclass(frozen=True)
class Choices:
    """The choices side by side, the paper's column first, deviations marked.

    Unless `every` choice is shown, they are those that a backend makes in another way than the
    paper, or that the paper does not specify.
    """

    run: Run
    every: bool = False

    def show(self, console: Console) -> None:
        """Print it with its legend, as several tables where the terminal is too narrow."""
        rows = list(self.rows())
        headings = [PAPER, *(label(one, self.run.targets) for one in self.run.targets)]
        if not rows:
            return
        for table in tables("choice", headings, rows, console.width, kept=1):
            console.print(table)
        if any("*" in cell.plain for row in rows for cell in row.cells):
            legend = "* another option than the paper's, declared and shown by the numbers"
            console.print(Text(legend, "dim"), soft_wrap=True)
        console.print()

    def rows(self) -> Iterator[Row]:
        """Yield a row for each choice."""
        for choice in self.run.choices.values():
            cells = [_choice(backend, choice) for backend in self.run]
            usual = ("-", "as the paper", choice["paper"])
            if self.every or any(one.plain not in usual for one in cells):
                paper = "(silent)" if choice["paper"] is None else choice["paper"]
                yield Row(choice["name"], [Text(paper), *cells])


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
    if status.broken and choice["clause"] in consequences(backend.verdicts):
        return Text(f"{shown} (not determined)", style="dim")
    if status.fails:
        return Text(f"{shown} (not shown by the numbers)", style="bold red")
    return Text(shown if status.judged or value is not None else "-")


def _value(value: Value | None, missing: str = "") -> str:
    if value is None:
        return missing
    return f"{value:g}" if isinstance(value, float) else str(value)
