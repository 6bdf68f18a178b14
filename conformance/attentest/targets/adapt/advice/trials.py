"""Tries the options that may answer a question: with those that give the right numbers, it judges.

That is an assumption then. An option is not taken that says what the code is, that leaves out what
a call may need, or whose contrary gives other numbers, and none is in a strict reading: the
question names it, and it is known to work.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any

import torch
from torch import Tensor, nn

from attentest.results.text import line_of_user, summary_with_place
from attentest.targets.adapt import probing
from attentest.targets.adapt.advice.components import other_components
from attentest.targets.adapt.masks import NO_CONVENTION
from attentest.targets.adapt.names import MASKS
from attentest.targets.adapt.parameters.telling import LEFT_OVER
from attentest.targets.adapt.parameters.trials.clock import Clock
from attentest.targets.adapt.probing import SIZES, Probe, inputs
from attentest.targets.adapt.reading import Attempt, Contrary, Reading, Unclear, Uncovered
from attentest.targets.file_modules import public_names
from attentest_spec import Backend

MOST = 6
"""The largest number of attempts for one question."""

SECONDS = 2.0
"""Time after which no further attempt is begun."""

_NEAREST = "In the nearest reading"
_END = " Name another component"

Read = Callable[[Reading], Any]
"""Returns the backend of code that is read with other options, or raises what reading it does."""


class _Outcome(Enum):
    """The result of an attempt; what is `OPEN` carries something that the numbers do not show."""

    FITS = "fits"
    DIFFERS = "differs"
    OPEN = "open"
    REFUSED = "refused"
    UNCOVERED = "uncovered"


def answered(question: Unclear, thing: Any, reading: Reading, read: Read) -> Backend:
    """Return the backend of `thing` with the options that give the numbers of the reference.

    Raises `question` with those that have to be said, or with all that were tried in vain.
    """
    if probing.MISSING:
        failure = probing.MISSING[0]
        raise Unclear(
            f"Building or calling it raised {type(failure).__name__}: "
            f"{public_names(str(failure))}. Install what is "
            f"missing first, if it is needed. {question}"
        )
    others = [] if question.taken is None else other_components(thing, reading, question.taken)
    trials = _Trials(reading, read, question.taken or "")
    made: list[Attempt] = []
    beyond: list[Attempt] = []
    differing: list[Attempt] = []
    for attempt, outcome in trials.outcomes([*question.attempts, *others]):
        made.append(attempt)
        beyond += [attempt] * (outcome is _Outcome.UNCOVERED and not attempt.component)
        differing += [attempt] * (outcome is _Outcome.DIFFERS and not attempt.component)
        if outcome is _Outcome.FITS:
            contrary = trials.contrary(attempt)
            carried = bool(attempt.given) and not question.built  # it may be an input of a call
            if attempt.component or contrary or carried or reading.strict:
                raise Unclear(f"{question.text} {contrary or works(attempt)}") from question
            return _with_options(read(attempt.added(reading)), attempt)  # type: ignore[no-any-return]
    if not made:
        raise question
    if beyond and (reason := trials.reason(beyond[0])):
        text = f"{question.text} Options were tried. With {beyond[0].options}: {reason}"
        raise Unclear(text) from question
    tried = ", ".join(one.options for one in made)
    none = f"Options were tried, and none gives the numbers of the reference: {tried}."
    if differing:
        none += trials.nearest(differing[0])
    if alike := trials.failure_of(len(made)):
        none += "" if alike in question.text else f" With all of them it fails alike: {alike}."
    raise Unclear(f"{question.text} {none}", question.rest) from question


def switched(question: Unclear, attempts: Iterable[Attempt], reading: Reading, read: Read) -> None:
    """Raise `question` with the first of the `attempts` that gives the numbers of the reference."""
    for attempt in attempts:
        try:
            found = read(attempt.added(reading))
        except Exception:  # code that a user wrote may raise anything
            continue
        if getattr(found, "fits", True) and not _leaves_parameters(found):
            if attempt.options in question.text:
                raise Unclear(f"{question.text.removesuffix('.')} (tried).") from question
            raise Unclear(f"{question.text} {works(attempt)}") from question


def works(attempt: Attempt) -> str:
    """Return that the options of an attempt give the numbers of the reference."""
    return (
        f"{attempt.options} (in Python: {attempt.python}): with it the numbers are those of the "
        f"reference (tried)."
    )


def _with_options(backend: Any, attempt: Attempt) -> Any:
    """Return the backend that was read with the options of `attempt`, which are an assumption."""
    values = [f"{own}={value}" for own, value in attempt.given.items()]
    values += [f"{own} as {role}" for role, own in attempt.arguments.items()]
    others = replace(
        attempt,
        given=dict.fromkeys(attempt.given, "VALUE"),
        arguments=dict.fromkeys(attempt.arguments, "NAME"),
    )
    words = (
        f"assumed {', '.join(values)}, which nothing says: with it the numbers are those of the "
        f"reference; if you meant another, add {others.options}"
    )
    head, *rest = backend.understood or ("",)
    understood = tuple(one for one in (head, words, *rest) if one)
    return replace(backend, assumed=(words, *backend.assumed), understood=understood)


@dataclass(frozen=True)
class _Trials:
    """Readings of code with other options; it was `taken` for a component by its name.

    `failures` holds what code raised when it was built or called, in the user's own lines.
    """

    reading: Reading
    read: Read
    taken: str
    failures: list[str] = field(default_factory=list)

    def failure_of(self, made: int) -> str:
        """Return what all `made` attempts raised, "" where they did not raise the same."""
        alike = len(self.failures) == made and len(set(self.failures)) == 1
        return self.failures[0] if alike else ""

    def outcomes(self, attempts: Sequence[Attempt]) -> Iterator[tuple[Attempt, _Outcome]]:
        """Yield the attempts that are made, each with its outcome.

        An argument that carries an input is not left out: that would excuse a mistake in its use.
        """
        clock, carriers = Clock(SECONDS), set[str]()
        for attempt in attempts[:MOST]:
            if carriers & attempt.given.keys():
                continue
            if clock.rings():
                return
            outcome = self.outcome(attempt)
            if outcome in (_Outcome.OPEN, _Outcome.DIFFERS):
                carriers |= set(attempt.arguments.values())
            yield attempt, outcome

    def outcome(self, attempt: Attempt) -> _Outcome:
        """Return how the code is read with `attempt`, quickly first: nothing is asked then."""
        wanted = attempt.added(self.reading)
        quick = replace(wanted, anyway=True, component=wanted.component or self.taken)
        try:
            found = self.read(quick)
            if not _carries_keys(attempt, found):
                return _Outcome.REFUSED
            if not getattr(found, "fits", True) or _leaves_parameters(found):
                return _Outcome.DIFFERS
            if not self.reading.anyway:
                found = self.read(wanted)
        except Contrary:
            return _Outcome.OPEN
        except Uncovered:
            return _Outcome.UNCOVERED
        except Exception as failure:  # code that a user wrote may raise anything
            raised = failure.__cause__ if isinstance(failure, Unclear) else failure
            if raised is not None and line_of_user(raised):
                self.failures.append(summary_with_place(raised, 200))
            return _Outcome.REFUSED
        return _Outcome.OPEN if _hides_nothing(attempt, found) else _Outcome.FITS

    def reason(self, attempt: Attempt) -> str:
        """Return why code is not judged that has the numbers of the reference with `attempt`."""
        try:
            self.read(attempt.added(self.reading))
        except Uncovered as question:
            return question.text
        except Exception:  # code that a user wrote may raise anything
            return ""
        return ""

    def nearest(self, attempt: Attempt) -> str:
        """Return the first step that differs with `attempt`, or that it is judged with it."""
        try:
            self.read(attempt.added(self.reading))
        except Unclear as question:
            said = (
                question.text[question.text.find(_NEAREST) :] if _NEAREST in question.text else ""
            )
            return said and f" With {attempt.options}: {said.partition(_END)[0].rstrip()}"
        except Exception:  # code that a user wrote may raise anything
            return ""
        return f" {attempt.options} judges it all the same."

    def contrary(self, attempt: Attempt) -> str:
        """Return that the other value of a switch gives other numbers, "" where it does not."""
        values = list(attempt.given.values())
        if len(values) != 1 or not isinstance(values[0], bool):
            return ""
        other = replace(attempt, given=dict.fromkeys(attempt.given, not values[0]))
        if self.outcome(other) is not _Outcome.DIFFERS:
            return ""
        return (
            f"With {attempt.options} the numbers are those of the reference, and with "
            f"{other.options} they are not (tried): say which one is meant."
        )


def _leaves_parameters(backend: Any) -> bool:
    """Say whether some parameters have no place: at other values the numbers may be others."""
    return any(one.startswith(LEFT_OVER) for one in getattr(backend, "assumed", ()))


def _hides_nothing(attempt: Attempt, backend: Any) -> bool:
    """Say whether an argument was taken for a mask that shows no convention."""
    masks = attempt.arguments.keys() & set(MASKS)
    return bool(masks) and any(NO_CONVENTION in one for one in getattr(backend, "assumed", ()))


def _carries_keys(attempt: Attempt, backend: Any) -> bool:
    """Say whether what is taken for keys is attended to: it has a length of its own, and counts."""
    if "key" not in attempt.arguments:
        return True
    (component, recipe), *_ = backend.recipes.items()
    built = recipe.build(SIZES)
    probe = Probe(built.double().eval() if isinstance(built, nn.Module) else built)
    given = inputs(component, 7, probe.dtype)
    first, second = (
        probe.called(recipe.call, {**given, "key": key, "value": key})
        for key in (given["key"], given["key"] + 1.0)
    )
    tensors = isinstance(first, Tensor) and isinstance(second, Tensor)
    return tensors and not torch.equal(first, second)  # type: ignore[arg-type]  # both are tensors
