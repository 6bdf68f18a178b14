"""Parts of a comparison, as plain values: choices, steps, differences and what explains them."""

from collections.abc import Mapping
from dataclasses import dataclass

from attentest.analysis.identify import MEASURED, Finding
from attentest_spec import CHOICES
from attentest_spec.choices import Value
from attentest_spec.clauses import clauses

EQUAL, EXPLAINED, NOT_EXPLAINED = "equal", "explained", "not explained"

BOUND = 1e-9
"""Numbers in float64 that are apart by no more than this count as equal."""


@dataclass(frozen=True)
class ChoiceRow:
    """One choice: what every backend declares and shows of it, and whether they differ.

    `values` are what each is taken to use: what it declares, or where its numbers contradict that,
    what they show; None is what it neither declares nor shows.
    """

    choice: str
    findings: tuple[Finding, ...]
    values: tuple[Value | None, ...]
    differs: bool

    @property
    def is_known(self) -> bool:
        """Whether a backend declares an option or its numbers show one."""
        return any(
            one.declared is not None or one.status == MEASURED or not one.agrees
            for one in self.findings
        )

    @property
    def paper(self) -> Value | None:
        """The paper's option, None where the paper is silent."""
        return CHOICES[self.choice].paper

    @property
    def why(self) -> str:
        """The reason that it matters."""
        return CHOICES[self.choice].why

    @property
    def clause(self) -> str:
        """The clause that judges it."""
        return CHOICES[self.choice].clause

    @property
    def demand(self) -> str:
        """The demand of that clause."""
        return clauses()[self.clause].text


@dataclass(frozen=True)
class StepRow:
    """One step: how far each backend is from the first one, at its output and its first input.

    None where the two cannot be compared: one does not show the step, or the shapes differ.
    `shapes` are those of the outputs, None where a backend does not show it.
    """

    step: str
    shapes: tuple[tuple[int, ...] | None, ...]
    outputs: tuple[float | None, ...]
    inputs: tuple[float | None, ...]


@dataclass(frozen=True)
class Departure:
    """The first mismatch: its step, and the largest difference of all steps.

    `inside` says that what went into the step was still equal; else they part on the way to it.
    `step` is "" where they nowhere do.
    """

    step: str
    inside: bool
    difference: float


@dataclass(frozen=True)
class Flip:
    """A choice that two backends settle differently."""

    choice: str
    first: Value
    other: Value


@dataclass(frozen=True)
class Explanation:
    """The reason that `other` gives other numbers than `first`.

    `options` explain the difference: with them flipped the oracle of `first` is as near to `other`
    as `left` says, and none of them can be left out. `silent` are the other choices that differ;
    they do not show on these inputs. `parting` tells where the two part, `astray` where each of
    those that are not what their own choices say leaves them.
    """

    first: str
    other: str
    status: str
    parting: Departure
    options: tuple[Flip, ...] = ()
    silent: tuple[Flip, ...] = ()
    left: float | None = None
    astray: Mapping[str, Departure] | None = None
