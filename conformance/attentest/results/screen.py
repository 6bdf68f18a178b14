"""The screen of one piece of code: how it was understood, what is wrong, and the answer."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path

from attentest.results.assumptions import assumptions, is_of_several
from attentest.results.blocks import (
    HELD,
    WIDTH,
    block,
    cut,
    folded,
    followers,
    near,
    place,
    warnings,
)
from attentest.results.branches import Branch, not_run, sentence
from attentest.results.causes import Cause, causes, may_follow
from attentest.results.plan import Plan
from attentest.results.run import BackendRun, Description
from attentest.results.text import counted
from attentest.results.verdict import Status
from attentest.results.wording import explanations, inferred, report, summary, uncompared
from attentest_spec import CHOICES
from attentest_spec.clauses import clauses

_NOT_GIVEN = "; not given: "
"""The words before the arguments that a call leaves out, in its summary."""

_ASSUMED = 3
"""The largest number of assumptions that are listed of one piece of code.

It is twice that of several that conform.
"""

LINES = 40
"""The number of lines of 80 columns on which code with one mistake is shown."""

_BREVITIES = 3
"""The number of ways to say how code was understood, each shorter than the one before."""

_PLACES = 4
"""The largest number of branches that are listed where they are not judged."""


@dataclass(frozen=True)
class Screen:
    """The settings of a shown result: its `width`, and `full`, with a block for every clause.

    `written` are the files with reproductions, by the clause and the backend at the head of a
    cause. `next_step` is what to do next, and `how` is said of the judging.
    """

    width: int = WIDTH
    full: bool = False
    written: Mapping[tuple[str, str], Path] = field(default_factory=dict)
    next_step: str = "--reproduce DIR (a file that shows each cause) or --full (every clause)"
    how: str = ""

    def report(self, backend: BackendRun, plan: Plan) -> str:
        """Return all that is shown of one backend."""
        if self.full or backend.failure:
            return report(backend, plan, self.how)
        found = causes(backend.verdicts)
        rest = [
            self.other_choices(backend),
            *self.blocks(found, backend.description.assumed),
            self.left_out(backend.branches),
            self.end(backend, plan),
        ]
        fewer = 1 if len(failing_causes(found)) > 1 else _BREVITIES
        for brevity in range(fewer):
            first = self.understood(backend.description, brevity=brevity)
            text = "\n\n".join(filter(None, [first, *rest]))
            if len(text.splitlines()) <= LINES:
                break
        return text

    def paragraphs(self, backend: BackendRun) -> Iterator[str]:
        """Yield how a backend was understood, and a block for each cause."""
        if self.full:
            if backend.description.inferred:
                yield f"{backend.target}, {inferred(backend.description.inferred)}"
            yield from explanations(backend.verdicts)
            return
        yield from filter(None, [self.understood(backend.description)])
        yield from self.blocks(causes(backend.verdicts), backend.description.assumed)

    def end(self, backend: BackendRun, plan: Plan) -> str:
        """Return the answer: whether it conforms, the first cause, and the counts."""
        answer = self.answer(backend, causes(backend.verdicts))
        return "\n".join([*answer, *self.counts(backend, plan)])

    def understood(
        self,
        *descriptions: Description,
        names: Sequence[str] = (),
        wrong: Sequence[bool] = (),
        brevity: int = 0,
    ) -> str:
        """Return how code that is no backend is called: one line for each, then what is assumed.

        The call of each of many is one row; where some of them are `wrong`, the calls of the others
        are counted. Of several pieces of code, `names` are said with what is assumed of each. With
        a `brevity` of 1 one assumption less is listed, and with 2 each sentence is cut besides.
        """
        read = [one for one in descriptions if one.inferred]
        if any(not one.summary for one in read):  # a stream of an older version
            return "\n".join(inferred(one.inferred) for one in read)
        many = len(read) > 2
        shown = read
        if many and any(wrong):
            pairs = zip(descriptions, wrong, strict=True)
            shown = [one for one, is_wrong in pairs if is_wrong and one.inferred]
        lines = [f"understood: {one.summary}" for one in shown]
        if rest := len(read) - len(shown):
            lines.append(f"understood: {counted(rest, 'call')} more, listed by --full")
        assumed = assumptions(descriptions, names)
        most = _ASSUMED if len(read) < 2 or any(wrong) else 2 * _ASSUMED
        most -= brevity > 0
        if len(assumed) > most:
            left = len(assumed) - most + 1
            assumed[most - 1 :] = [f"and {counted(left, 'assumption')} more, listed by --full"]
        cuts = brevity > 1
        rows = [self._one(one) if many else self._few(one, 3 - cuts) for one in lines]
        rows += [self._few(one, 4 if is_of_several(one) else 2 - cuts) for one in assumed]
        return "\n".join(row for several in rows for row in several)

    def _one(self, call: str) -> list[str]:
        """Return a call in one row; in two, without its constructor, where something is not given.

        What is not given has to be seen: nothing that depends on it is judged.
        """
        if _NOT_GIVEN not in call:
            return self._few(call, 1)
        return self._few(re.sub(r"\([^()]*\)(?= called )", "", call), 2)

    def _few(self, sentence: str, most: int) -> list[str]:
        return cut(folded(sentence, self.width), most)

    def other_choices(self, backend: BackendRun) -> str:
        """Return the choices that are declared and differ from the paper's, in one sentence."""
        assumed = {assumed_choice(one) for one in backend.description.assumed}
        other = [
            f"{clauses()[one.clause].choice}={one.measured}"
            for one in backend.verdicts
            if one.status is Status.DEVIATION and clauses()[one.clause].choice not in assumed
        ]
        text = f"other choices than the paper's, as declared: {', '.join(other)}"
        return "\n".join(self._few(text, 3)) if other else ""

    def left_out(self, branches: Sequence[Branch]) -> str:
        """Return which branches of the code are not judged, in one sentence; "" for none."""
        said = sentence(not_run(branches), most=_PLACES)
        return "\n".join(self._few(said, 4)) if said else ""

    def blocks(
        self, found: Sequence[Cause], assumed: Sequence[str] = (), *, name: bool = False
    ) -> Iterator[str]:
        """Yield the block of each cause, with the assumptions that it depends on.

        Warnings after a failure are one block: they come last, and are no reason to fail. So are
        several clauses that may fail because of a cause before them. `name` says that they are of
        several backends, which are named.
        """
        numbered = list(enumerate(found, 1))
        is_failing = bool(failing_causes(found))
        for kind, group in groupby(numbered, key=lambda one: _kind(one[1], found, is_failing)):
            numbers, several = zip(*group, strict=True)
            if kind is warnings or (kind is not None and len(several) > 1):
                yield kind(several, numbers, self.width)
                continue
            for number, cause in zip(numbers, several, strict=True):
                own = [one for one in assumed if depends(cause, one)]
                file = self.file(cause)
                yield block(cause, number, self.width, written=file, assumed=own, name=name)

    def answer(self, backend: BackendRun, found: Sequence[Cause]) -> list[str]:
        """Return whether a backend conforms, and if not, why and where."""
        failing = failing_causes(found)
        if not failing:
            return []
        return [
            *folded(f"{backend.target} does not conform: {broken_by(backend, found)}", self.width),
            *self.first(failing[0]),
        ]

    def first(self, cause: Cause) -> list[str]:
        """Return the first cause with its place, and the next step."""
        lines = cut(folded(f"{label(cause)}: {cause.text}", self.width), 2)
        if cause.location:
            is_value, where = cause.location.is_value, place(cause.location)
            step = f"first step that differs: {cause.location.step}, at" if is_value else "line:"
            lines += folded(f"{step} {where}", self.width)
        file = self.file(cause)
        next_step = f"python {near(str(file))}" if file else self.next_step
        return [*lines, *folded(f"next: {next_step}", self.width)]

    def counts(self, backend: BackendRun, plan: Plan) -> list[str]:
        """Return how much was judged and conforms, with every denominator."""
        numbers = self.folded_after(" (", summary(backend, plan) + self.how)
        return numbers + [
            row for one in uncompared(backend) for row in self.folded_after(", ", one)
        ]

    def folded_after(self, mark: str, line: str) -> list[str]:
        """Return a line folded after the first `mark`: what is before it stays together."""
        head, mark, rest = line.partition(mark)
        if len(head) > self.width:
            return folded(line, self.width)
        return folded(f"{head.replace(' ', HELD)}{mark}{rest}", self.width)

    def file(self, cause: Cause) -> Path | None:
        """Return the file with the reproduction of a cause, None where there is none."""
        return self.written.get((cause.head.backend, cause.head.clause))


_Block = Callable[[Sequence[Cause], Sequence[int], int], str]


def _kind(cause: Cause, found: Sequence[Cause], is_failing: bool) -> _Block | None:
    """Return the function that shows several of the kind of `cause` together, None for none."""
    if cause.severity is Status.WARNING:
        return warnings if is_failing else None
    return followers if may_follow(cause, found) else None


def failing_causes(found: Iterable[Cause]) -> list[Cause]:
    """Return those of the causes by which a backend does not conform."""
    return [one for one in found if one.severity.fails_run]


def broken_by(backend: BackendRun, found: Iterable[Cause]) -> str:
    """Return how many clauses are broken by how many causes."""
    broken = sum(one.status.fails_run for one in backend.verdicts)
    return f"{counted(broken, 'clause')} broken by {counted(len(failing_causes(found)), 'cause')}"


def label(cause: Cause) -> str:
    """Return what the text of a cause is: its likely cause, or what was seen."""
    is_explained = cause.exact or (cause.location is not None and cause.location.computed)
    return "likely cause" if is_explained else "first finding"


def depends(cause: Cause, assumption: str) -> bool:
    """Say whether a cause depends on an assumption: its clause or an option is of that choice."""
    options = {one.partition("=")[0] for likely in cause.likely[:1] for one in likely.names}
    about = assumed_choice(assumption)
    return bool(about) and about in {clauses()[cause.head.clause].choice, *options}


def assumed_choice(assumption: str) -> str:
    """Return the choice that an assumption is about, "" for none."""
    name, equals, _ = assumption.removeprefix("assumed ").partition("=")
    return name if equals and name in CHOICES else ""
