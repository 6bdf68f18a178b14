"""What a failing example shows: where the backend answers otherwise than sound code does.

The same steps are asked again of the backend itself and of sound code. A step that the backend
does not answer twice alike shows nothing (a draw of dropout, a random birth); one that it answers
otherwise than sound code is wrong, and has to be explained.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from math import inf
from typing import Any

from attentest.analysis.diagnosis.apart import apart, size
from attentest.harness.errors import BackendError
from attentest.harness.replay import followed
from attentest.harness.subject import Question, Step
from attentest.harness.tolerances import as_floats, error_bound, rounding
from attentest_spec import Backend, Unsupported

_TERMS = 4096
"""Roundings allowed where no oracle measures how inputs are amplified, as in gradients."""

_FEW_TERMS = 64
"""Roundings of a single call, in parts of the size of its answer."""

_REPEATS = 3
"""How often a step is asked again: an answer drawn at random may be the same by chance."""

NOT_REACHED = Unsupported("not reached")


@dataclass(frozen=True)
class Mark:
    """What a step shows: whether sound code answers otherwise, and how far rounding may go."""

    outcome: Any
    wrong: bool
    tolerance: float


@dataclass(frozen=True)
class Evidence:
    """The steps of one failing example with their marks; None marks one that shows nothing."""

    steps: Sequence[Step]
    marks: Sequence[Mark | None]

    @property
    def key(self) -> int | None:
        """The number of the wrong step that an explanation has to reproduce first.

        Numbers and exceptions say more than an inventory, whose names are a matter of style.
        """
        wrong = [number for number, mark in enumerate(self.marks) if mark and mark.wrong]
        telling = [n for n in wrong if not isinstance(self.steps[n].outcome, dict)]
        return next(iter(telling or wrong), None)

    @property
    def weak(self) -> bool:
        """Whether the key step is an inventory, which code of another style may share."""
        return self.key is not None and isinstance(self.steps[self.key].outcome, dict)

    def at_key(self, backend: Backend) -> Any:
        """Return what `backend` answers at the key step."""
        assert self.key is not None
        return next(islice(followed(self.steps, backend), self.key, None), NOT_REACHED)

    def unlike(self, backend: Backend) -> tuple[int, float]:
        """Return how many steps `backend` answers otherwise, and the largest other difference."""
        count, worst = 0, 0.0
        for mark, outcome in zip(self.marks, _all(self.steps, backend), strict=True):
            if mark is None:
                continue
            difference = apart(mark.outcome, outcome)
            if difference > mark.tolerance:
                count += 1
            elif mark.wrong:
                worst = max(worst, difference)
        return count, worst


def examined(
    steps: Sequence[Step], backend: Backend, sound: Sequence[Backend], precision: str
) -> Evidence:
    """Ask `backend` and the `sound` ones again, and mark every step.

    A step is wrong where every sound one that answers it answers otherwise.
    """
    again = list(zip(*(_all(steps, backend) for _ in range(_REPEATS)), strict=True))
    answers = list(zip(*(_all(steps, one) for one in sound), strict=True))
    marks = [
        _mark(step, repeated, answered, precision)
        for step, repeated, answered in zip(steps, again, answers, strict=True)
    ]
    return Evidence(steps, marks)


def _mark(step: Step, again: Sequence[Any], sound: Sequence[Any], precision: str) -> Mark | None:
    told = [apart(step.outcome, one) for one in sound if not isinstance(one, Unsupported)]
    difference = min(told, default=0.0)
    tolerance = _tolerance(step, difference, precision)
    if any(apart(step.outcome, one) > tolerance for one in again):
        return None
    return Mark(step.outcome, difference > tolerance, tolerance)


def _tolerance(step: Step, difference: float, precision: str) -> float:
    """Return how far sound code may be from what was answered."""
    if step.question is not None and difference > 0:
        try:
            # A wrong answer may be larger than the right one, and is rounded accordingly.
            answer = step.outcome[0] if isinstance(step.outcome, tuple) else None
            own = rounding(precision, _FEW_TERMS) * size(answer)
            return max(own, _bound(step.question, difference))
        except (LookupError, ValueError, ArithmeticError, BackendError):
            pass  # the oracle refuses it too, or lacks parameters
    return rounding(precision, _TERMS) * size(step.outcome)


def _bound(question: Question, difference: float) -> float:
    probe, inputs, method = question.probe, question.inputs, question.method
    expected = as_floats(probe.expected(*inputs, method=method).output)
    return error_bound(probe, inputs, expected, method=method, difference=min(difference, inf))


def _all(steps: Sequence[Step], backend: Backend) -> list[Any]:
    found = list(followed(steps, backend))
    return found + [NOT_REACHED] * (len(steps) - len(found))
