"""Exceptions of the suite, and the moment that each belongs to."""

from typing import Any
from unittest import SkipTest

from attentest.results.text import summary


class Violation(AssertionError):
    """The backend answered, and the answer breaks the clause.

    `found` is one sentence with the numbers; `actual` and `expected` are shown where given.
    """

    def __init__(self, found: str, *, actual: Any = None, expected: Any = None) -> None:
        super().__init__(found)
        self.found = found
        self.actual = actual
        self.expected = expected


class Absent(SkipTest):
    """The backend does not claim what the clause is about."""


class BackendError(Exception):
    """The backend raised where it had to answer; `cause` is what it raised."""

    def __init__(self, doing: str, cause: BaseException) -> None:
        self.doing = doing
        self.cause = cause
        super().__init__(f"{doing} raised {summary(cause)}")


class Refused(Exception):
    """A backend could not be described, built, loaded or called; the text says why."""
