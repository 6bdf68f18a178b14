"""The findings of a report: the answer in its first lines, and each cause."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from attentest.results import reproductions
from attentest.results.blocks import certainty, known, near, place, raised_at
from attentest.results.causes import Cause
from attentest.results.screen import broken_by, depends, failing_causes, label
from attentest.results.text import counted
from attentest.results.verdict import Counterexample
from attentest.views.html.grid import Column
from attentest_spec.clauses import clauses

NOT_JUDGED, FAILS, CONFORMS = "not judged", "does not conform", "conforms"
"""The three answers for a backend, the gravest first: nothing is known of the first."""


@dataclass(frozen=True)
class Finding:
    """One cause of one column, in the words of the terminal.

    `number` counts the causes of the column, `undetermined` are the choices whose clause fails
    because this one does, `anchor` is its place in the page.
    """

    column: Column
    number: int
    cause: Cause
    anchor: str

    @property
    def text(self) -> str:
        """The mistake, in one sentence."""
        return self.cause.words or self.cause.text

    @property
    def where(self) -> str:
        """The file and the line, or where an error was raised; "" where they are not known."""
        if self.cause.location:
            return place(self.cause.location)
        return raised_at(self.cause.head.where) if self.cause.head.where else ""

    @property
    def certainty(self) -> str:
        """The certainty of the line, "" without a line."""
        return certainty(self.cause) if self.cause.location else ""

    @property
    def known(self) -> list[str]:
        """The known mistakes that fit."""
        return list(known(self.cause))

    @property
    def assumed(self) -> list[str]:
        """The assumptions about the code on which the cause depends."""
        if self.cause.head.clause not in clauses():
            return []
        assumed = self.column.backend.description.assumed
        return [one for one in assumed if depends(self.cause, one)]

    @cached_property
    def following(self) -> list[str]:
        """The clauses that fail because the first one does."""
        follows = self.column.follows
        head = self.cause.head.clause
        return [one for one in self.cause.clauses[1:] if follows.get(one) == head]

    @property
    def others(self) -> list[str]:
        """The other clauses that the cause breaks, but for those that follow."""
        return [one for one in self.cause.clauses[1:] if one not in self.following]

    @property
    def undetermined(self) -> list[str]:
        """The choices that cannot be told as long as the first clause fails."""
        choices = self.column.run.choices.items()
        return [name for name, choice in choices if choice["clause"] in self.following]

    @property
    def example(self) -> Counterexample | None:
        """The smallest counterexample."""
        return self.cause.counterexample

    @property
    def reproduction(self) -> str:
        """The code that shows the cause without the suite, "" where it cannot be written."""
        return reproductions.text(self.cause)


def findings(columns: Sequence[Column]) -> dict[str, list[Finding]]:
    """Return the causes of each column that has some, by its label, the gravest column first."""
    return {
        column.name: [
            Finding(column, number, cause, f"cause-{columns.index(column)}-{number}")
            for number, cause in enumerate(column.causes, 1)
        ]
        for column in by_gravity(columns)
        if column.causes
    }


def by_gravity(columns: Sequence[Column]) -> list[Column]:
    """Return the columns: first what does not conform, the most broken first."""
    order = [FAILS, NOT_JUDGED, CONFORMS]
    return sorted(columns, key=lambda one: (order.index(answer(one)), -len(one.findings)))


def answer(column: Column) -> str:
    """Return whether a backend conforms."""
    backend = column.backend
    if backend.failure or backend.lacks_numbers:
        return NOT_JUDGED
    lost = len(backend.verdicts) != len(column.run.plan.clauses)
    return FAILS if lost or any(one.status.fails_run for one in backend.verdicts) else CONFORMS


@dataclass(frozen=True)
class Answer:
    """The answer of the page: a `heading`, and a line for each backend that needs one.

    A line is the backend, the words, and the anchor of its first cause, "" for none.
    """

    heading: str
    lines: tuple[tuple[str, str, str], ...]


def answered(columns: Sequence[Column], found: Mapping[str, Sequence[Finding]]) -> Answer:
    """Return what the page says first."""
    lines = tuple(_line(one, found.get(one.name, ())) for one in by_gravity(columns))
    if len(columns) == 1:
        return Answer(f"{columns[0].label} {_WORDS[answer(columns[0])]}", lines)
    good = [one for one in columns if answer(one) == CONFORMS]
    if len(good) == len(columns):
        return Answer(f"All {len(columns)} backends conform", ())
    words = "conforms" if len(good) == 1 else "conform"
    rest = tuple(
        one
        for column, one in zip(by_gravity(columns), lines, strict=True)
        if answer(column) != CONFORMS
    )
    return Answer(f"{len(good) or 'None'} of {len(columns)} backends {words}", rest)


_WORDS = {CONFORMS: "conforms", FAILS: "does not conform", NOT_JUDGED: "could not be judged"}


def _line(column: Column, found: Sequence[Finding]) -> tuple[str, str, str]:
    """Return what is said of one backend."""
    backend, planned = column.backend, len(column.run.plan.clauses)
    if backend.failure:
        return column.label, backend.failure, ""
    if backend.lacks_numbers:
        return column.label, "nothing fails, and no numbers were compared", ""
    failing = failing_causes(one.cause for one in found)
    if failing:
        first = next(one for one in found if one.cause is failing[0])
        words = f"{broken_by(backend, column.causes)}; {_first(first)}"
        return column.label, words, first.anchor
    conforming, judged = backend.score
    words = f"{conforming} of {judged} judged clauses hold, of {planned} in all"
    if planned > len(backend.verdicts):
        words = f"{counted(planned - len(backend.verdicts), 'verdict')} missing; {words}"
    return column.label, words, ""


def _first(found: Finding) -> str:
    where = f", at {found.where}" if found.where else ""
    return f"{label(found.cause)}: {found.cause.text.rstrip('.')}{where}"


def words(cause: Cause) -> Iterator[str]:
    """Yield all that a search can find of a cause."""
    yield cause.text
    yield from known(cause)
    if cause.location:
        yield from (cause.words, cause.location.code, cause.location.step)
        yield f"{near(cause.file)}:{cause.line}"


def searched(columns: Sequence[Column]) -> list[dict[str, Any]]:
    """Return for every column the number of the cause of each clause, and the causes' words."""
    return [
        {
            "clauses": {
                slug: number for number, one in enumerate(column.causes) for slug in one.clauses
            },
            "words": [" ".join(words(one)) for one in column.causes],
        }
        for column in columns
    ]
