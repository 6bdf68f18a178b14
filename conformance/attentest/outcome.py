"""What judging a clause can end in: the verdicts, and the exceptions that lead to them."""

import traceback
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from unittest import SkipTest

from attentest.plain import line

STATUSES = (
    "pass",
    "deviation",
    "warning",
    "violation",
    "error",
    "timeout",
    "crash",
    "absent",
    "suite-bug",
)
"""Every status a verdict can have, from best to worst, `absent` and `suite-bug` apart."""

FAILURES = frozenset({"violation", "error", "timeout", "crash"})
"""The statuses that mean a backend does not conform."""


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


def summary(failure: BaseException, limit: int = 300) -> str:
    """Return the type and the message of `failure` on one line of at most `limit` characters."""
    try:
        text = str(failure)
    except Exception:  # the message is made by code of the backend's author
        text = "(its message cannot be read)"
    return line(f"{type(failure).__name__}: {text}", limit).rstrip(": ")


def last_frames(failure: BaseException, limit: int = 3) -> str:
    """Return the last lines of the traceback of `failure`, for a reader who has to find it."""
    frames = traceback.extract_tb(failure.__traceback__)[-limit:]
    return "; ".join(f"{frame.filename}:{frame.lineno} in {frame.name}" for frame in frames)


@dataclass(frozen=True)
class Witness:
    """The smallest inputs found that show a violation.

    `steps` says in words what was done, `code` does it again without the suite, `actual` and
    `expected` are the arrays that differ, as text.
    """

    steps: tuple[str, ...]
    code: str
    actual: str = ""
    expected: str = ""


@dataclass(frozen=True)
class Likeness:
    """A known mistake, or an option of a choice, that answers as the backend does.

    `kind` is "option", "fault" or "combination" of several; "complaint" is a fault that breaks
    the clause in the same words where answers cannot be compared. `names` are slugs of faults or
    `choice=option`, `text` says what it is, `difference` is the largest that is left, and
    `missed` counts the answers that it does not give.
    """

    kind: str
    names: tuple[str, ...]
    text: str
    difference: float | None = None
    missed: int = 0


@dataclass(frozen=True)
class Verdict:
    """What one clause says of one backend.

    `message` is one sentence with the numbers, `notes` are things worth knowing beside the status,
    `diagnosis` names what a wrong answer looks like (the likeliest first), `budget` is the largest
    used share of an error bound (None where none applied).
    """

    backend: str
    clause: str
    status: str
    message: str = ""
    notes: tuple[str, ...] = ()
    witness: Witness | None = None
    diagnosis: tuple[Likeness, ...] = ()
    budget: float | None = None
    seconds: float = 0.0

    def as_dict(self) -> dict[str, Any]:
        """Return the verdict as plain values for the stream."""
        witness = None
        if self.witness is not None:
            witness = {**vars(self.witness), "steps": list(self.witness.steps)}
        likenesses = [{**vars(one), "names": list(one.names)} for one in self.diagnosis]
        lists = {"notes": list(self.notes), "diagnosis": likenesses}
        return {**vars(self), **lists, "witness": witness}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> "Verdict":
        """Read a verdict back from the stream."""
        values = dict(plain)
        found = values.pop("witness", None)
        witness = Witness(**{**found, "steps": tuple(found["steps"])}) if found else None
        values["notes"] = tuple(values.get("notes", ()))
        values["diagnosis"] = tuple(
            Likeness(**{**one, "names": tuple(one["names"])}) for one in values.get("diagnosis", ())
        )
        return cls(**{**values, "witness": witness})
