"""Findings about a choice: the evidence of one component, and the sum over all of them."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import isclose
from typing import Any

from attentest_spec import CHOICES
from attentest_spec.choices import Value

CLOSE = 1e-6
"""Relative difference up to which a measured number is the declared one, at best."""


ONE_MATRIX = ("all-three", "target-and-output")
"""The options of `tying` that mean one matrix in a decoder-only model, which has two."""


@dataclass(frozen=True)
class Evidence:
    """The evidence of one component for a choice.

    `value` is the option that the numbers show, None where no listed one fits or where several
    do; `status` says which, `reason` explains it, `difference` is that from the closest option.
    """

    choice: str
    component: str
    status: str
    value: Value | None = None
    reason: str = ""
    difference: float | None = None


MEASURED, NONE_FITS, CANNOT_TELL = "measured", "none of the listed options", "cannot tell"

UNDETERMINED = "not determined"
"""The status of a choice that is tried together with others, where no options give the numbers.

A mistake somewhere in the formula is no option of each choice that it has.
"""


@dataclass(frozen=True)
class Finding:
    """The declared and the measured option of a choice.

    `declared` is None where nothing is, `measured` where `status` is not "measured"; `reason`
    explains the status; `difference` is that between the numbers and the closest option, None where
    nothing was compared; `components` are those that showed it.
    Numbers that differ by `tolerance`, relatively, count as the same. `inferred` says that the code
    was read as it is: what it does not declare, its numbers cannot contradict.
    """

    choice: str
    declared: Value | None
    measured: Value | None
    status: str
    reason: str = ""
    difference: float | None = None
    components: tuple[str, ...] = ()
    tolerance: float = CLOSE
    inferred: bool = False

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> "Finding":
        """Read a finding back from plain values."""
        return cls(**{**plain, "components": tuple(plain["components"])})

    @property
    def paper(self) -> Value | None:
        """The option of the paper, None where the paper does not specify one."""
        return CHOICES[self.choice].paper

    @property
    def expected(self) -> Value | None:
        """The option that the numbers should show: the declared one, else the paper's, else any."""
        if self.declared is None:
            return None if self.inferred else self.paper
        return self.declared

    @property
    def agrees(self) -> bool:
        """Whether the numbers do not contradict what is declared."""
        unknown = self.status in (CANNOT_TELL, UNDETERMINED)
        if unknown or self.expected in (None, "unspecified"):
            return True
        if self.measured is None:
            return False
        if self.choice == "tying" and self.components == ("language_model",):
            return (self.expected in ONE_MATRIX) == (self.measured in ONE_MATRIX)
        return same(self.expected, self.measured, self.tolerance)


def same(one: Value | None, other: Value | None, tolerance: float = CLOSE) -> bool:
    """Return whether two values of a choice are the same, numbers up to `tolerance`.

    An option whose name is a number, such as the base "10000", is that number.
    """
    if one == other or one is None or other is None:
        return one == other
    try:
        return isclose(float(one), float(other), rel_tol=tolerance)
    except ValueError:
        return False


def merged(
    choice: str,
    declared: Value | None,
    evidence: Sequence[Evidence],
    tolerance: float = CLOSE,
) -> Finding:
    """Return the finding from the `evidence` of several components.

    The smallest component that shows an option decides; where another component shows another
    option, none fits.
    """
    shown = [one for one in evidence if one.status == MEASURED]
    failed = [one for one in evidence if one.status == NONE_FITS]
    if not shown:
        first = (failed or list(evidence) or [_unseen(choice)])[0]
        return Finding(choice, declared, None, first.status, first.reason, first.difference)
    values = list(dict.fromkeys(one.value for one in shown))
    if not all(same(value, values[0], tolerance) for value in values):
        return _disagreeing(choice, declared, shown)
    misfits = ", ".join(one.component for one in failed)
    reason = f"{misfits} fits no listed option" if misfits else shown[0].reason
    where = tuple(one.component for one in shown)
    return Finding(
        choice, declared, values[0], MEASURED, reason, shown[0].difference, where, tolerance
    )


def with_undetermined(found: Mapping[str, Finding]) -> dict[str, Finding]:
    """Return findings whose choices are not determined where no options of several fit together.

    These have one reason: they were tried together, in one component.
    """
    failed = Counter(one.reason for one in found.values() if one.status == NONE_FITS)

    def is_undetermined(one: Finding) -> bool:
        return one.status == NONE_FITS and failed[one.reason] > 1

    return {
        name: replace(one, status=UNDETERMINED) if is_undetermined(one) else one
        for name, one in found.items()
    }


def _disagreeing(choice: str, declared: Value | None, shown: Sequence[Evidence]) -> Finding:
    """Return the finding from components that show different options."""
    where = tuple(one.component for one in shown)
    text = "; ".join(
        f"{value} in {', '.join(one.component for one in shown if one.value == value)}"
        for value in dict.fromkeys(one.value for one in shown)
    )
    if choice == "fully_masked_row":  # what differs between components is not specified
        return Finding(choice, declared, "unspecified", MEASURED, text, None, where)
    return Finding(choice, declared, None, NONE_FITS, f"different options: {text}", None, where)


def _unseen(choice: str) -> Evidence:
    return Evidence(choice, "", CANNOT_TELL, reason="no component that it provides shows it")


def format_value(value: Value | None) -> str:
    """Return a value of a choice as it is written, a number as short as it can be."""
    if not isinstance(value, float):
        return str(value)
    short = f"{value:g}"
    return short if float(short) == value else f"{value:.15g}"
