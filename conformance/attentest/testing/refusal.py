"""Assertions that a backend refuses invalid input with an error that helps, and no valid one."""

import re
from collections.abc import Callable, Collection
from typing import Any, TypeVar

import numpy as np

from attentest.harness.errors import Absent, BackendError, Shortcoming, Violation
from attentest.harness.subject import Subject
from attentest.results.text import summary

T = TypeVar("T")

_REFUSALS = (ValueError, IndexError)


def refuses(subject: Subject, doing: str, action: Callable[[], Any]) -> None:
    """Demand that `action` raises, whatever it is: how an error is worded is another clause.

    `doing` describes the action with its numbers, such as "building 7 columns for 2 heads".
    """
    try:
        result = action()
    except BackendError:
        return
    answer = f"an array of shape {result.shape}" if isinstance(result, np.ndarray) else "no error"
    raise Violation(f"{doing} was not refused: {subject.name} answered with {answer}.")


def require_index_errors(subject: Subject) -> None:
    """End as absent on an accelerator: an index out of range ends all later computation there."""
    if subject.device != "cpu":
        raise Absent(f"on {subject.device} an index out of range is not refused by an exception")


def accepts(subject: Subject, what: str, action: Callable[[], Any]) -> None:
    """Demand that `action` raises nothing; `what` says what is given to it, in the plural."""
    try:
        action()
    except BackendError as error:
        message = f"{what} are refused by {subject.name}: {summary(error.cause)}."
        raise Shortcoming(message) from error.cause


def explains_refusal(
    subject: Subject,
    doing: str,
    action: Callable[[], Any],
    *,
    naming: Collection[int | float],
    any_of_them: bool = False,
) -> None:
    """Demand that the error helps, where `action` is refused; what is not refused is not judged.

    It helps as a ValueError or an IndexError whose message contains `naming`, all or any of the
    numbers; without numbers every exception does.
    """
    try:
        action()
    except BackendError as error:
        cause = error.cause
    else:
        return
    if problems := _problems(cause, naming, any_of_them=any_of_them):
        raise Shortcoming(
            f"{doing} is refused by {subject.name} with an error that {' and '.join(problems)}: "
            f"{summary(cause)}."
        ) from cause


def refused_by(
    subject: Subject, doing: str, build: Callable[[], T], call: Callable[[T], Any]
) -> None:
    """Demand that what `call` refuses is refused by `build` already."""
    try:
        built = build()
    except BackendError:
        return
    try:
        call(built)
    except BackendError as error:
        raise Shortcoming(
            f"{doing} is refused by {subject.name} only where it is called: {summary(error.cause)}."
        ) from error.cause


def _problems(
    cause: BaseException, naming: Collection[int | float], *, any_of_them: bool
) -> list[str]:
    """Return why an error does not help whoever has to find the number that is wrong."""
    if not naming:
        return []
    kind = [] if isinstance(cause, _REFUSALS) else ["is neither a ValueError nor an IndexError"]
    missing = [str(number) for number in naming if not _names(str(cause), number)]
    if not missing or (any_of_them and len(missing) < len(naming)):
        return kind
    return [*kind, f"does not name {(' or ' if any_of_them else ' and ').join(missing)}"]


def _names(text: str, number: float) -> bool:
    """Return whether `text` contains `number` as a number of its own, not as part of another."""
    return re.search(rf"(?<![\w.]){re.escape(str(number))}(?!\w|\.\d)", text) is not None
