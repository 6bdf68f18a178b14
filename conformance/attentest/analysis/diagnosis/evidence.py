"""The evidence in a failing example: the steps whose outcomes differ from those of correct code.

The same steps are repeated on the backend itself and on correct code. A step whose outcome is not
repeatable is ignored (a draw of dropout, a random initialisation); one whose outcome differs from
that of correct code is wrong, and has to be explained.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from math import inf
from typing import Any

from attentest.analysis.diagnosis.difference import difference, size
from attentest.harness.errors import BackendError
from attentest.harness.replay import replay
from attentest.harness.subject import Question, Step
from attentest.harness.tolerances import as_floats, error_bound, rounding
from attentest_spec import Backend, Unsupported

_TERMS = 4096
"""Roundings allowed where no reference measures how inputs are amplified, as in gradients."""

_FEW_TERMS = 64
"""Roundings allowed in a single call, relative to the size of its answer."""

_REPEATS = 3
"""The number of repetitions of a step: an answer drawn at random may be the same by chance."""

_EXPLAINED = 1 / 32
"""The part of a wrong answer's difference that an explanation may leave, however coarse the format.

In half precision the tolerance of ill-conditioned answers is as large as what mistakes change.
"""

NOT_REACHED = Unsupported("not reached")


@dataclass(frozen=True)
class Mark:
    """The outcome of a step, whether it differs from correct code, and the tolerance of that.

    A wrong outcome is reproduced by what differs from it by no more than the tolerance.
    """

    outcome: Any
    wrong: bool
    tolerance: float


@dataclass(frozen=True)
class Example:
    """The steps of one failing example with their marks; None marks a step that is ignored."""

    steps: Sequence[Step]
    marks: Sequence[Mark | None]

    @property
    def key(self) -> int | None:
        """The number of the wrong step that an explanation has to reproduce first.

        Numbers and exceptions say more than an inventory, whose names are a matter of style.
        """
        wrong = [number for number, mark in enumerate(self.marks) if mark and mark.wrong]
        informative = [n for n in wrong if not isinstance(self.steps[n].outcome, dict)]
        return next(iter(informative or wrong), None)

    @property
    def weak(self) -> bool:
        """Whether the key step is an inventory, which code of another style may share."""
        return self.key is not None and isinstance(self.steps[self.key].outcome, dict)

    @property
    def numeric(self) -> bool:
        """Whether the key step gave numbers: no refusal, and no inventory."""
        return self.key is not None and size(self.steps[self.key].outcome) > 0 and not self.weak

    def at_key(self, backend: Backend) -> Any:
        """Return what `backend` answers at the key step."""
        assert self.key is not None
        return next(islice(replay(self.steps, backend), self.key, None), NOT_REACHED)

    def mismatches(self, backend: Backend) -> tuple[int, float]:
        """Return the number of steps that `backend` does not reproduce.

        The second number is the largest difference in the wrong steps that it does reproduce.
        """
        count, worst = 0, 0.0
        for mark, outcome in zip(self.marks, _all(self.steps, backend), strict=True):
            if mark is None:
                continue
            remaining = difference(mark.outcome, outcome)
            if remaining > mark.tolerance:
                count += 1
            elif mark.wrong:
                worst = max(worst, remaining)
        return count, worst


def examine(
    steps: Sequence[Step], backend: Backend, correct: Sequence[Backend], precision: str
) -> Example:
    """Repeat the steps on `backend` and on the `correct` ones, and mark every step.

    A step is wrong where its outcome differs from that of every correct backend that has one.
    """
    again = list(zip(*(_all(steps, backend) for _ in range(_REPEATS)), strict=True))
    answers = list(zip(*(_all(steps, one) for one in correct), strict=True))
    marks = [
        _mark(step, repeated, answered, precision)
        for step, repeated, answered in zip(steps, again, answers, strict=True)
    ]
    return Example(steps, marks)


def _mark(step: Step, again: Sequence[Any], correct: Sequence[Any], precision: str) -> Mark | None:
    known = [one for one in correct if not isinstance(one, Unsupported)]
    closest = min((difference(step.outcome, one) for one in known), default=0.0)
    tolerance = _tolerance(step, closest, precision)
    if any(difference(step.outcome, one) > tolerance for one in again):
        return None
    wrong = closest > tolerance
    return Mark(step.outcome, wrong, min(tolerance, _EXPLAINED * closest) if wrong else tolerance)


def _tolerance(step: Step, closest: float, precision: str) -> float:
    """Return the tolerance of the outcome, which is `closest` from that of correct code."""
    if step.question is not None and closest > 0:
        try:
            # A wrong answer may be larger than the right one, and is rounded accordingly.
            answer = step.outcome[0] if isinstance(step.outcome, tuple) else None
            own = rounding(precision, _FEW_TERMS) * size(answer)
            return max(own, _call_tolerance(step.question, closest))
        except (LookupError, ValueError, ArithmeticError, BackendError):
            pass  # the reference refuses it too, or lacks parameters
    return rounding(precision, _TERMS) * size(step.outcome)


def _call_tolerance(question: Question, closest: float) -> float:
    probe, inputs, method = question.probe, question.inputs, question.method
    expected = as_floats(probe.expected(*inputs, method=method).output)
    return error_bound(probe, inputs, expected, method=method, difference=min(closest, inf))


def _all(steps: Sequence[Step], backend: Backend) -> list[Any]:
    outcomes = list(replay(steps, backend))
    return outcomes + [NOT_REACHED] * (len(steps) - len(outcomes))
