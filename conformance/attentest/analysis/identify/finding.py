"""What was found about a choice: in one component, and over all of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isclose
from typing import Any

from attentest_spec import CHOICES
from attentest_spec.choices import Value

CLOSE = 1e-6
"""Relative difference up to which a measured number is the declared one, at best."""


@dataclass(frozen=True)
class Evidence:
    """What one component shows of a choice.

    `value` is the option that the numbers show, None where no listed one fits or where several
    do; `status` says which, `difference` is what is left with the closest, `reason` says more.
    """

    choice: str
    component: str
    status: str
    value: Value | None = None
    reason: str = ""
    difference: float | None = None


MEASURED, NONE_FITS, CANNOT_TELL = "measured", "none of the listed options", "cannot tell"


@dataclass(frozen=True)
class Finding:
    """What a backend declares for a choice and what its numbers show.

    `declared` is None where nothing is, `measured` where `status` is not "measured"; `reason` says
    why it is not, or what else is to say; `difference` is what is left between the numbers and the
    closest option, None where nothing was compared; `components` are those that showed it.
    Numbers that are apart by `tolerance`, relatively, count as the same.
    """

    choice: str
    declared: Value | None
    measured: Value | None
    status: str
    reason: str = ""
    difference: float | None = None
    components: tuple[str, ...] = ()
    tolerance: float = CLOSE

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> "Finding":
        """Read a finding back from plain values."""
        return cls(**{**plain, "components": tuple(plain["components"])})

    @property
    def paper(self) -> Value | None:
        """The paper's option, None where the paper is silent."""
        return CHOICES[self.choice].paper

    @property
    def expected(self) -> Value | None:
        """What the numbers should show: what is declared, else the paper's, else anything."""
        return self.paper if self.declared is None else self.declared

    @property
    def agrees(self) -> bool:
        """Whether the numbers do not contradict what is declared."""
        if self.status == CANNOT_TELL or self.expected in (None, "unspecified"):
            return True
        return self.measured is not None and same(self.expected, self.measured, self.tolerance)


def same(one: Value | None, other: Value | None, tolerance: float = CLOSE) -> bool:
    """Say whether two values of a choice are the same, numbers up to what can be measured."""
    if isinstance(one, float | int) and isinstance(other, float | int):
        return isclose(one, other, rel_tol=tolerance)
    return one == other


def merged(
    choice: str,
    declared: Value | None,
    evidence: Sequence[Evidence],
    tolerance: float = CLOSE,
) -> Finding:
    """Return the finding that the `evidence` of several components adds up to.

    The smallest component that can tell decides; where another shows another option, no one fits.
    """
    told = [one for one in evidence if one.status == MEASURED]
    failed = [one for one in evidence if one.status == NONE_FITS]
    if not told:
        first = (failed or list(evidence) or [_unseen(choice)])[0]
        return Finding(choice, declared, None, first.status, first.reason, first.difference)
    values = list(dict.fromkeys(one.value for one in told))
    if not all(same(value, values[0], tolerance) for value in values):
        return _disagreeing(choice, declared, told)
    lost = ", ".join(one.component for one in failed)
    reason = f"{lost} fits no listed option" if lost else told[0].reason
    where = tuple(one.component for one in told)
    left = told[0].difference
    return Finding(choice, declared, values[0], MEASURED, reason, left, where, tolerance)


def _disagreeing(choice: str, declared: Value | None, told: Sequence[Evidence]) -> Finding:
    """Return what components add up to that show unlike options."""
    where = tuple(one.component for one in told)
    shown = "; ".join(
        f"{value} in {', '.join(one.component for one in told if one.value == value)}"
        for value in dict.fromkeys(one.value for one in told)
    )
    if choice == "fully_masked_row":  # where not all keep a promise, none is made
        return Finding(choice, declared, "unspecified", MEASURED, shown, None, where)
    return Finding(choice, declared, None, NONE_FITS, f"unlike options: {shown}", None, where)


def _unseen(choice: str) -> Evidence:
    return Evidence(choice, "", CANNOT_TELL, reason="no component that it provides shows it")


def format_value(value: Value | None) -> str:
    """Return a value of a choice as it is written, a number as short as it can be."""
    if not isinstance(value, float):
        return str(value)
    short = f"{value:g}"
    return short if float(short) == value else f"{value:.15g}"
