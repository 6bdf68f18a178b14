"""Whole files: every component that a file holds is judged, and one summary comes first."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from attentest.harness.process import Child, Isolation
from attentest.results.assumptions import EMBEDS, left_out
from attentest.results.blocks import folded
from attentest.results.causes import Cause, causes
from attentest.results.following import followed_by
from attentest.results.meanings import Contradiction, contradiction
from attentest.results.run import BackendRun, Run
from attentest.results.screen import Screen
from attentest.results.text import counted
from attentest.results.verdict import Status
from attentest.results.wording import why_uncompared
from attentest.targets.adapt.components import only_mentions
from attentest.targets.members import Member, around
from attentest.targets.resolve import ELSEWHERE


@dataclass(frozen=True)
class Outcome:
    """A member of a file and its record: None for what is not judged by itself.

    `around` is the encoder of the file that it holds, where that is judged and it could not be
    built or called; "" for none.
    """

    member: Member
    run: Run | None = None
    around: str = ""

    @property
    def backend(self) -> BackendRun | None:
        """The record of the one backend."""
        return next(iter(self.run), None) if self.run else None

    @property
    def judged(self) -> bool:
        """Whether at least one clause was judged, and numbers were compared where some could be."""
        backend = self.backend
        if backend is None or backend.lacks_numbers:
            return False
        return any(one.status.judged for one in backend.verdicts)

    @property
    def embeds(self) -> bool:
        """Whether it was judged as an encoder with the embedding of its tokens."""
        said = self.backend.description.inferred if self.backend and self.judged else ()
        return self._component() == "encoder" and any(EMBEDS in one for one in said)

    @property
    def uncompared(self) -> str:
        """The reason that no numbers were compared although it was read, "" where some were."""
        backend = self.backend
        if backend is None or backend.failure or not backend.lacks_numbers:
            return ""
        return f"no numbers were compared of {self.member.name}{why_uncompared(backend)}"

    @property
    def left_out(self) -> str:
        """The part of it that was not compared, though the rest is judged, "" for none."""
        part = left_out(self.backend.description) if self.backend and self.judged else ""
        return part and f"of {self.member.name} {part}"

    @property
    def fails(self) -> bool:
        """Whether a verdict is a violation, an error, a timeout or a crash."""
        return self.judged and any(
            one.status.fails_run for one in (self.backend.verdicts if self.backend else ())
        )

    @property
    def asks(self) -> bool:
        """Whether it was recognised as a component or model, and could not be read as that.

        A class whose name only mentions a component, as `EncoderPooling` does, was not recognised,
        nor was a function by the last words of its name alone. One that is not defined may be any.
        """
        backend, member = self.backend, self.member
        if member.undefined:
            return True
        if backend is None or not backend.failure or member.inside or self.around:
            return False
        mentions = member.guessed and only_mentions(member.name, member.component)
        hint = member.hinted or mentions
        return bool(member.component) and not hint

    @property
    def is_left_out(self) -> bool:
        """Whether it may be something to judge by its name or code, and was not recognised."""
        backend, member = self.backend, self.member
        failed = backend is not None and bool(backend.failure) and not member.inside
        return bool(member.looks) or (failed and not self.asks)

    @property
    def line(self) -> tuple[str, str, str]:
        """The name, the component, and the result in a few words."""
        return self.member.name, self._component() or "-", self._result()

    def _component(self) -> str:
        """Return the component that was judged, which numbers may say better than a name."""
        backend = self.backend
        if backend is not None and self.judged:
            return next(iter(backend.description.components or ()), "")
        return self.member.component if backend is None or not self.member.guessed else ""

    def _result(self) -> str:
        backend, member = self.backend, self.member
        if member.undefined:
            return "not defined: see below"
        if backend is None or (backend.failure and member.inside):
            if member.inside:
                return f"not judged by itself: part of {member.inside}"
            return _UNJUDGED.get(member.looks, _OTHER)
        if self.around:
            return f"not judged: what it makes of {self.around}"
        if self.asks:
            return "question: see below"
        if backend.failure:
            return f"not judged: its name only hints at {member.component}, see below"
        conforming, judged = backend.score
        if not self.judged:
            return "nothing judged, see below"
        if not self.fails:
            return f"conforming ({conforming} of {judged} judged clauses)"
        broken = [one for one in backend.verdicts if one.status.fails_run]
        violations = sum(one.status is Status.VIOLATION for one in broken)
        raised = sum(one.status is Status.ERROR for one in broken)
        others = len(broken) - violations - raised + backend.errors
        words = ("error, timeout or crash", "errors, timeouts or crashes")
        counts = [counted(violations, "violation")] * bool(violations)
        counts += [counted(others, *words)] * bool(others)
        return ", ".join(counts)


_OTHER = "not a component"
_UNJUDGED = {
    "image": "not judged: it embeds patches of images, and not tokens",
    "head": "not judged: it may be one head of attention, judge the class that joins its heads",
    "mask": "not judged: it may be a mask, add --as COMPONENT to its name",
    "model": "not judged: it may be a model, add --as COMPONENT to its name",
}
"""The results of what is no component by its name, and should not be overlooked."""


@dataclass(frozen=True)
class FileSummary:
    """The outcomes of all members of the file `target`."""

    target: str
    outcomes: Sequence[Outcome]

    @property
    def exit_code(self) -> int:
        """1 where a member violates the specification, else 3 where a question is open, else 0.

        A question is open where a member was recognised and could not be read, where no numbers of
        one were compared, or none was judged.
        """
        if any(one.fails for one in self.outcomes):
            return 1
        if self._is_undecided or any(one.asks or one.uncompared for one in self.outcomes):
            return 3
        return 0 if any(one.judged for one in self.outcomes) else 3

    @cached_property
    def _masks(self) -> Contradiction | None:
        """The masks of the file that are made with one meaning of True and taken with the other."""
        backends = [(one.member.name, one.backend) for one in self.outcomes if one.judged]
        read = {name: one.description.inferred for name, one in backends if one is not None}
        try:
            source = Path(self.target).read_text(encoding="utf-8")
        except (OSError, ValueError):  # a module
            source = ""
        return contradiction(read, source)

    @property
    def _is_undecided(self) -> bool:
        """Whether masks have two meanings in the file, and nothing turns them around."""
        return self._masks is not None and not self._masks.turned

    def text(self, screen: Screen) -> str:
        """Return a line for every member, then a block for each cause; in full for each member."""
        if screen.full:
            return "\n\n".join([self.table(), *self.blocks(screen), self.last_line()])
        backends = [one.backend for one in self.outcomes if one.backend and one.judged]
        found = causes(verdict for one in backends for verdict in one.verdicts)
        failing = [one for one in found if one.severity.fails_run]
        names = [one.target.rpartition(":")[2] for one in backends]
        several = names if len(names) > 1 else []
        wrong = [any(verdict.status.fails_run for verdict in one.verdicts) for one in backends]
        read = [one.description for one in backends]
        understood = screen.understood(*read, names=several, wrong=wrong)
        if self._masks is not None and self._masks.turned:
            understood = "\n".join([understood, *folded(self._masks.text, screen.width)])
        return "\n\n".join(
            [
                self.table(),
                *([understood] if understood else []),
                *self.questions(screen, found),
                *screen.blocks(found, name=True),
                *filter(None, [screen.left_out([b for one in backends for b in one.branches])]),
                "\n".join(
                    [
                        *(screen.first(failing[0]) if failing else []),
                        *screen.folded_after("; ", self.last_line()),
                    ]
                ),
            ]
        )

    def questions(self, screen: Screen, found: Sequence[Cause]) -> Iterator[str]:
        """Yield why members could not be judged, in one sentence where a name is only a hint.

        So it is where the mistake that is `found` in another member is at the line that it names.
        """
        for one in self.outcomes:
            backend, name = one.backend, one.member.name
            if backend is None or not backend.failure or one.member.inside or one.around:
                continue
            said = backend.failure.removesuffix(ELSEWHERE).rstrip()
            if one.member.guessed:
                said = _in_short(said, f"{self.target}:{name}")
            if where := followed_by(said, found):
                yield "\n".join(folded(_FOLLOWS.format(name, where), screen.width))
            else:
                lines = folded(said, screen.width, indent="")
                yield "\n".join([f"== {name}", "", *lines])
        if self._masks is not None and not self._masks.turned:
            lines = folded(self._masks.text, screen.width, indent="")
            yield "\n".join(["== masks", "", *lines])
        for why, names in self._undefined().items():
            said = _UNDEFINED.format(", ".join(names), Path(self.target).name, why)
            yield "\n".join(folded(said, screen.width, indent=""))

    def _undefined(self) -> Mapping[str, list[str]]:
        """Return the names of the classes that are not defined, by the reason."""
        found: dict[str, list[str]] = {}
        for one in self.outcomes:
            if why := one.member.undefined:
                found.setdefault(why, []).append(one.member.name)
        return found

    def table(self) -> str:
        """Return a line for every member, and one for all those that are no component."""
        rows = [one.line for one in self.outcomes]
        if not rows:
            return f"{self.target} defines no function and no class."
        others = [name for name, _, result in rows if result == _OTHER]
        if len(others) > 1:
            rows = [one for one in rows if one[2] != _OTHER]
        widths = [max((len(row[column]) for row in rows), default=0) for column in (0, 1)]
        room = _WIDTH - sum(widths) - 6
        lines = [
            f"  {name:{widths[0]}}  {component:{widths[1]}}  {_fitted(result, room)}"
            for name, component, result in rows
        ]
        if len(others) > 1:
            lines += folded(f"  no component: {', '.join(others)}", _WIDTH, indent="    ")
        return "\n".join([f"{self.target}:", *lines])

    def blocks(self, screen: Screen) -> Iterator[str]:
        """Yield the report on every member that was judged or that has a question."""
        for one in self.outcomes:
            backend = one.backend
            if one.run is None or backend is None or (backend.failure and one.member.inside):
                continue
            shown = one.run.limited(backend.description.components or ())
            block = screen.report(next(iter(shown)), shown.plan)
            yield f"== {one.member.name}\n\n{block}"

    def last_line(self) -> str:
        """Return how many members conform, and the names of those that were not judged.

        Where one of these decides the exit code, the line says so, and where one may be a model.
        """
        judged = [one for one in self.outcomes if one.judged]
        good = sum(not one.fails for one in judged)
        conform = "conforms" if len(judged) == 1 else "conform"
        line = f"{self.target}: {good} of {counted(len(judged), 'judged component')} {conform}"
        code = " (exit code 3)" if self.exit_code == 3 else ""
        asked = ", ".join(one.member.name for one in self.outcomes if one.asks)
        line += f"; not judged{code}, see the question: {asked}" if asked else ""
        line += f"{code}, see the question on masks" if self._is_undecided else ""
        line += "".join(f"; {one.uncompared}" for one in self.outcomes if one.uncompared)
        line += "".join(f"; {one.left_out}" for one in self.outcomes if one.left_out)
        left = [one.member for one in self.outcomes if one.is_left_out]
        rest = ", ".join(one.name for one in left if one.looks != "model")
        line += f"; not judged: {rest}" if rest else ""
        models = [one.name for one in left if one.looks == "model"]
        words = "may be a whole model" if len(models) == 1 else "may be whole models"
        return line + (f"; NOT judged, and {words}: {', '.join(models)}" if models else "")


def remote_members(target: str, isolation: Isolation) -> list[Member] | None:
    """Return the members of the file `target`, listed in a process of its own.

    None for a file that holds a backend. Raises LoadFailure, and Unavailable for a file that
    hangs or crashes.
    """
    with Child("attentest.targets.members", isolation) as child:
        found = child.call("members", target=target)
    return None if found is None else [Member(**one) for one in found]


def remote_adapter(target: str, reading: Mapping[str, Any], isolation: Isolation) -> str:
    """Return the inferred adapter of `target` as Python; raises as :func:`remote_members`."""
    with Child("attentest.targets.members", isolation) as child:
        text: str = child.call("adapter", target=target, reading=reading)
    return text


def targets(target: str, members: Iterable[Member]) -> Mapping[str, Member]:
    """Return the members that are judged, by their targets."""
    return {f"{target}:{one.name}": one for one in members if one.component}


def summary(target: str, members: Iterable[Member], run: Run) -> FileSummary:
    """Return the outcomes of `members` from the `run` of those that were judged."""
    known = {one.target: one for one in run}
    unread = {name.rpartition(":")[2] for name, one in known.items() if one.failure}
    outcomes = []
    for member in members:
        backend = known.get(f"{target}:{member.name}")
        own = None if backend is None else Run.of(run.plan, [backend])
        failure = "" if backend is None or member.inside not in unread else backend.failure
        if any(words in failure for words in _OF_PARTS):
            member = replace(member, inside="")
        outcomes.append(Outcome(member, own))
    encoders = {one.member.name for one in outcomes if one.embeds}
    members = [one.member for one in outcomes]
    return FileSummary(
        target,
        [
            replace(one, around=around(one.member, one.backend.failure, encoders, members))
            if one.backend is not None
            else one
            for one in outcomes
        ],
    )


_OF_PARTS = ("Say which one is meant", "turns x by no listed convention")
"""Words of questions that a part has by itself where no whole is judged: on two meanings, and on
numbers of rotary positions that may be why the whole has those of no option."""


_WIDTH = 80
"""The width of the table of members, as far as its names leave it."""


def _fitted(result: str, room: int) -> str:
    """Return the result of a member in as few words as fit."""
    return result if len(result) <= room else result.replace("not judged by itself: ", "", 1)


_NEAREST = re.compile(r" In the nearest reading, .*?(?= A part of the name |$)")


_TRIED = re.compile(r"What was tried: [^:]*(: .*?) \((at [^)]*)\)")


_UNDEFINED = (
    "{} cannot be defined here: in {}, {}. Make this statement run, as by an installation of what "
    "it imports, and they are judged."
)


_FOLLOWS = "{} is not judged: its first step that differs is {}"


def _in_short(question: str, target: str) -> str:
    """Return the first sentence of a question, and the one on the line where numbers differ.

    Where no call ran, the first failure and its line are part of the first sentence.
    """
    first, *rest = question.split(". ")
    if not rest:
        return first
    if tried := _TRIED.search(question):
        first = f"{first}{tried[1].rstrip('.')}, {tried[2]}"
    line = _NEAREST.search(question)
    return f"{first}.{line[0] if line else ''} More: attentest check {target}"
