"""Verdicts: the status of a clause on one backend, with the numbers that led to it."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from attentest_spec.choices import Value


class Status(StrEnum):
    """The outcome of a clause, from best to worst; `absent` and `suite-bug` stand apart."""

    PASS = "pass"
    DEVIATION = "deviation"
    WARNING = "warning"
    VIOLATION = "violation"
    ERROR = "error"
    TIMEOUT = "timeout"
    CRASH = "crash"
    ABSENT = "absent"
    SUITE_BUG = "suite-bug"

    @property
    def judged(self) -> bool:
        """Whether the clause applied to the backend."""
        return self is not Status.ABSENT

    @property
    def holds(self) -> bool:
        """Whether the clause holds, under the paper's choice or a declared one."""
        return self in (Status.PASS, Status.DEVIATION)

    @property
    def conforms(self) -> bool:
        """Whether the backend conforms: the clause holds, or is a SHOULD that does not."""
        return self.holds or self is Status.WARNING

    @property
    def fails(self) -> bool:
        """Whether the backend does not conform."""
        return self in (Status.VIOLATION, Status.ERROR, Status.TIMEOUT, Status.CRASH)

    @property
    def contradicts(self) -> bool:
        """Whether what the backend computed contradicts the clause, be it a MUST or a SHOULD."""
        return self in (Status.VIOLATION, Status.WARNING)

    @property
    def compared(self) -> bool:
        """Whether what the backend computed was compared with what the clause says."""
        return self.holds or self.contradicts

    @property
    def broken(self) -> bool:
        """Whether the clause does not hold, for whatever reason that lies with the backend."""
        return self.fails or self.contradicts

    @property
    def needs_words(self) -> bool:
        """Whether the verdict has to be explained to the reader."""
        return self.broken or self is Status.SUITE_BUG

    @property
    def fails_run(self) -> bool:
        """Whether a run or a test fails by it: the backend's fault, or a bug of the suite."""
        return self.fails or self is Status.SUITE_BUG


@dataclass(frozen=True)
class Counterexample:
    """The smallest inputs found that show a violation.

    `steps` are the calls in words, `code` repeats them without the suite, `actual` and `expected`
    are the arrays that differ, as text.
    """

    steps: tuple[str, ...]
    code: str
    actual: str = ""
    expected: str = ""


@dataclass(frozen=True)
class LikelyCause:
    """A known mistake, or an option of a choice, that gives the same results as the backend.

    `kind` is "option", "fault" or "combination" of several; "complaint" is a fault that breaks
    the clause with the same message where results cannot be compared. `names` are slugs of faults
    or `choice=option`, `text` describes it, `difference` is the largest remaining one, and
    `missed` counts the results that it does not reproduce.
    """

    kind: str
    names: tuple[str, ...]
    text: str
    difference: float | None = None
    missed: int = 0


@dataclass(frozen=True)
class Location:
    """The line of the user's code at which the numbers first leave the reference's.

    `step` is the intermediate value of the reference that differs there ("scores"), `expected` and
    `computed` say in words of the formula what the reference computes and what the line computes,
    "" where no known mistake computes that, and where the latter says the mistake by itself.
    `confirmed`: with the reference's value in the place of that line's result, the examples that
    failed no longer do; otherwise the line is suspected.
    """

    file: str
    line: int
    code: str
    step: str
    expected: str
    computed: str
    confirmed: bool = False

    @property
    def is_value(self) -> bool:
        """Whether `step` is a value of the reference, and not what no value shows."""
        return self.step not in EFFECTS


EFFECTS = ("gradient", "mask", "evaluation", "parameters")
"""The steps of lines that no value shows: a gradient, the fill of a mask, a draw, idle numbers."""


@dataclass(frozen=True)
class Verdict:
    """The status of one clause on one backend, and why.

    `message` is one sentence with the numbers, `notes` are observations that do not change the
    status, `diagnosis` holds the likely causes of a wrong result (the likeliest first), `budget` is
    the largest used share of a tolerance (None where none applied).

    `measured` is the option that the results show, where the clause is about a choice; `where` is
    the end of the traceback of an error, which `message` ends with in brackets; `location` is the
    line of the user's code at which a wrong result begins, where it could be determined.

    Raises ValueError for a status that is none.
    """

    backend: str
    clause: str
    status: Status
    message: str = ""
    notes: tuple[str, ...] = ()
    counterexample: Counterexample | None = None
    diagnosis: tuple[LikelyCause, ...] = ()
    budget: float | None = None
    seconds: float = 0.0
    measured: Value | None = None
    where: str = ""
    location: Location | None = None

    def __post_init__(self) -> None:
        """Make a status of the word that the stream holds."""
        object.__setattr__(self, "status", Status(self.status))

    @property
    def finding(self) -> str:
        """The message without the place in the code where an error was raised."""
        return self.message.removesuffix(f" ({self.where})") if self.where else self.message

    @property
    def cause(self) -> str:
        """The exception and its place, whatever was being done: the same cause is one error."""
        raised = self.finding.partition(" raised ")[2] or self.finding
        return f"{raised} ({self.where.rpartition('; ')[2]})"

    def as_dict(self) -> dict[str, Any]:
        """Return the verdict as plain values for the stream; the last three if there are any."""
        values = {**vars(self), "status": self.status.value, "notes": list(self.notes)}
        example = values.pop("counterexample")
        values["witness"] = example and {**vars(example), "steps": list(example.steps)}
        values["diagnosis"] = [{**vars(one), "names": list(one.names)} for one in self.diagnosis]
        values["location"] = self.location and vars(self.location)
        empty = {"measured": None, "where": "", "location": None}
        return {
            name: value
            for name, value in values.items()
            if name not in empty or value != empty[name]
        }

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> "Verdict":
        """Read a verdict back from the stream."""
        values = dict(plain)
        example = values.pop("witness", None)
        if example:
            example = Counterexample(**{**example, "steps": tuple(example["steps"])})
        values["notes"] = tuple(values.get("notes", ()))
        values["diagnosis"] = tuple(
            LikelyCause(**{**one, "names": tuple(one["names"])})
            for one in values.get("diagnosis", ())
        )
        location = values.pop("location", None)
        values["location"] = Location(**location) if location else None
        return cls(**{**values, "counterexample": example or None})
