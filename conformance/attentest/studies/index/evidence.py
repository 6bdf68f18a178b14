"""The evidence of a mistake: measures of its trainings beyond the range of correct ones.

A measure shows a mistake where the mean over its seeds is farther from the mean of the correct
trainings of the same seeds than seeds alone reach, and by more than a floor that no plot resolves.
Seeds reach as far as the largest value of correct trainings is from their smallest.
"""

from collections.abc import Callable, Iterator, Sequence
from enum import StrEnum
from statistics import fmean

from attentest.studies.learning.result import Point
from attentest.studies.sweep.record import Record


class Evidence(StrEnum):
    """The evidence of a mistake, from the most visible to the least."""

    STOPS = "stops"
    TRAINING = "training loss"
    VALIDATION = "held-out loss"
    ACCURACY = "accuracy"
    NOTHING = "nothing"
    UNCHANGED = "no number changes"


FLOOR = 0.01
"""The smallest difference that counts: in loss per token, and as a share of tokens."""

Measure = Callable[[Point], float | None]


def evidence(
    faulty: Sequence[Record], correct: Sequence[Record], usual: Sequence[Record] = ()
) -> Evidence:
    """Return what shows a mistake on one task, from its trainings and the correct ones.

    `correct` have the seeds of the faulty ones and differ from them by the mistake alone. `usual`
    are trainings of a correct model from more seeds: where their range is larger, it counts. Raises
    ValueError where a correct training failed: there is nothing to compare with.
    """
    failed = next((one.reason for one in (*correct, *usual) if one.reason), "")
    if failed:
        raise ValueError(f"a training of the correct model failed: {failed}")
    if any(one.reason for one in faulty):
        return Evidence.STOPS
    twins = {one.seed: one.points for one in correct}
    if all(one.points == twins[one.seed] for one in faulty):
        return Evidence.UNCHANGED
    for kind, measure, part in _CURVES:
        columns = zip(
            *(_columns(records, measure, part) for records in (faulty, correct, usual or correct)),
            strict=True,
        )
        if any(_beyond(*three) for three in columns):
            return kind
    return Evidence.NOTHING


_CURVES: tuple[tuple[Evidence, Measure, slice], ...] = (
    (Evidence.TRAINING, lambda point: point.training, slice(1, None)),
    (Evidence.VALIDATION, lambda point: point.validation, slice(1, None)),
    (Evidence.ACCURACY, lambda point: point.tokens, slice(-1, None)),
)
"""The measures, each with the points of a curve that count."""


def strongest(several: Sequence[Evidence]) -> Evidence:
    """Return the most visible of the evidence on several tasks."""
    return min(several, key=list(Evidence).index)


def _columns(records: Sequence[Record], measure: Measure, part: slice) -> Iterator[list[float]]:
    """Yield the values of all records at each point of a `part` of their curves."""
    rows = [[measure(point) for point in one.points[part]] for one in records]
    for column in zip(*rows, strict=True):
        yield [value for value in column if value is not None]


def _beyond(faulty: Sequence[float], correct: Sequence[float], usual: Sequence[float]) -> bool:
    distance = abs(fmean(faulty) - fmean(correct))
    reach = max(max(values) - min(values) for values in (correct, usual))
    return distance > max(reach, FLOOR)
