"""Assertions that a backend refuses invalid input with an error that helps."""

import re
from collections.abc import Callable, Collection
from typing import Any

import numpy as np

from attentest.harness.errors import BackendError, Violation
from attentest.harness.subject import Subject
from attentest.results.text import summary

_REFUSALS = (ValueError, IndexError)


def refuses(
    subject: Subject, doing: str, action: Callable[[], Any], *, naming: Collection[int | float] = ()
) -> None:
    """Demand that `action` raises ValueError or IndexError, its message containing all of `naming`.

    `doing` describes the action with its numbers, such as "building 7 columns for 2 heads".
    """
    _helpful(subject, doing, _refused(subject, doing, action), naming)


def refuses_somehow(subject: Subject, doing: str, action: Callable[[], Any]) -> None:
    """Demand that `action` raises, whatever it is: how an error is worded is another clause."""
    _refused(subject, doing, action)


def explains_refusal(
    subject: Subject, doing: str, action: Callable[[], Any], *, naming: Collection[int | float]
) -> None:
    """Demand of an `action` that is refused what :func:`refuses` does; others are not judged."""
    try:
        action()
    except BackendError as error:
        _helpful(subject, doing, error.cause, naming)


def _refused(subject: Subject, doing: str, action: Callable[[], Any]) -> BaseException:
    """Return what the backend raises; raise a Violation where it answers."""
    try:
        result = action()
    except BackendError as error:
        return error.cause
    answer = f"an array of shape {result.shape}" if isinstance(result, np.ndarray) else "no error"
    raise Violation(f"{doing} was not refused: {subject.name} answered with {answer}.")


def _helpful(
    subject: Subject, doing: str, cause: BaseException, naming: Collection[int | float]
) -> None:
    if not isinstance(cause, _REFUSALS):
        raise Violation(
            f"{doing} must be refused with a ValueError or an IndexError; "
            f"{subject.name} raised {summary(cause)}."
        ) from cause
    missing = [str(number) for number in naming if not _names(str(cause), number)]
    if missing:
        raise Violation(
            f"{doing} is refused by {subject.name} with an error that does not name "
            f"{' and '.join(missing)}: {summary(cause)}."
        ) from cause


def _names(text: str, number: float) -> bool:
    """Return whether `text` contains `number` as a number of its own, not as part of another."""
    return re.search(rf"(?<![\w.]){re.escape(str(number))}(?!\w|\.\d)", text) is not None
