"""Exceptions of the suite, and the moment that each belongs to.

| moment | exceptions |
| --- | --- |
| a check judges a backend | Violation and its Shortcoming, Absent, BackendError |
| a study asks a backend | Unavailable, and ProcessFailure where its process is lost |
| a checkpoint is converted | NotConvertible, BadCheckpoint |
| a command is interrupted | Stopped |

All have one base, as have BadExample, BadPlan and BadTask of the studies, about what a user asks
for. Those about files of results are in `results`; LoadFailure and UnknownName, about what a name
or target leads to, belong to the spec.
"""

from typing import Any
from unittest import SkipTest

from attentest.results.text import summary


class AttentestError(Exception):
    """The base of the suite's exceptions."""


class Violation(AttentestError, AssertionError):
    """The backend answered, and the answer breaks the clause.

    `found` is one sentence with the numbers; `actual` and `expected` are shown where given.
    """

    def __init__(self, found: str, *, actual: Any = None, expected: Any = None) -> None:
        super().__init__(found)
        self.found = found
        self.actual = actual
        self.expected = expected


class Shortcoming(Violation):
    """A finding that says all that there is: no line and no likely cause are searched.

    It is a refusal whose error does not help, or numbers that are not finite, which fit no line.
    """


class Absent(AttentestError, SkipTest):
    """The backend does not claim what the clause is about."""


class BackendError(AttentestError):
    """The backend raised where it had to answer; `cause` is what it raised."""

    def __init__(self, doing: str, cause: BaseException) -> None:
        self.doing = doing
        self.cause = cause
        super().__init__(f"{doing} raised {summary(cause)}")


class Unavailable(AttentestError):
    """A backend gives no usable answer; the text says why, `status` is "timeout" or "crash"."""

    status = "crash"


class ProcessFailure(Unavailable):
    """The process of a backend was lost."""

    def __init__(self, status: str, reason: str) -> None:
        super().__init__(reason)
        self.status = status


class NotConvertible(AttentestError):
    """A checkpoint is not converted; the text is one paragraph: why, and what to do."""


class BadCheckpoint(NotConvertible):
    """The file is no checkpoint that can be read."""


class Stopped(AttentestError):
    """The command was interrupted: its processes are ended, and nothing more is asked."""
