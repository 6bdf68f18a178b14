"""What judging a clause can end in: the verdicts, and the exceptions that lead to them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

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
