"""What a comparison finds, as plain values."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from attentest.comparison.example import Example
from attentest.comparison.pictures import Picture
from attentest.identify import Finding
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
    def paper(self) -> Value | None:
        """The paper's option, None where the paper is silent."""
        return CHOICES[self.choice].paper

    @property
    def why(self) -> str:
        """Why it matters."""
        return CHOICES[self.choice].why

    @property
    def clause(self) -> str:
        """The clause that judges it."""
        return CHOICES[self.choice].clause

    @property
    def demand(self) -> str:
        """What that clause demands."""
        return clauses()[self.clause].text


@dataclass(frozen=True)
class StepRow:
    """One step: how far each backend is from the first one, at its output and its first input.

    None where the two cannot be compared: one does not show the step, or the shapes are unlike.
    `shapes` are those of the outputs, None where a backend does not show it.
    """

    step: str
    shapes: tuple[tuple[int, ...] | None, ...]
    outputs: tuple[float | None, ...]
    inputs: tuple[float | None, ...]


@dataclass(frozen=True)
class Departure:
    """Where numbers part: the first step that is apart, and by how much the furthest is.

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
    """Why `other` gives other numbers than `first`.

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


@dataclass(frozen=True)
class Failure:
    """A backend that could not be compared, and why; `loaded` is False where it has none."""

    backend: str
    reason: str
    loaded: bool


@dataclass(frozen=True)
class Comparison:
    """Backends side by side: their choices, their numbers step by step, and what explains them.

    `steps` compare each with the first, `explanations` every pair, those with the first in front.
    `own` says how far each is from the oracle under its own choices, `components` what was called,
    with the `example`; `notes` what is to be known of it; `pictures` show what each computes.
    """

    backends: tuple[str, ...]
    choices: tuple[ChoiceRow, ...]
    components: tuple[str, ...]
    example: Example
    steps: tuple[StepRow, ...]
    own: tuple[Departure, ...]
    explanations: tuple[Explanation, ...]
    notes: tuple[str, ...]
    failures: tuple[Failure, ...]
    pictures: tuple[Picture, ...] = ()

    @property
    def explained(self) -> bool:
        """Whether all could be compared, and every pair is equal or explained."""
        good = all(one.status != NOT_EXPLAINED for one in self.explanations)
        return good and bool(self.explanations) and not self.failures

    def choice_rows(self) -> list[dict[str, Any]]:
        """Return a dictionary for every choice, such as a data frame is made of.

        Under each backend stands the option that it uses, None where that is not known.
        """
        return [
            {
                "choice": row.choice,
                "paper": row.paper,
                **dict(zip(self.backends, row.values, strict=True)),
                "differs": row.differs,
                "clause": row.clause,
            }
            for row in self.choices
        ]

    def step_rows(self) -> list[dict[str, Any]]:
        """Return a dictionary for every step: how far each backend is from the first one."""
        others = self.backends[1:]
        return [
            {"step": row.step, **dict(zip(others, row.outputs, strict=True))} for row in self.steps
        ]

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain values."""
        told = [
            asdict(row)
            | {name: getattr(row, name) for name in ("paper", "why", "clause", "demand")}
            for row in self.choices
        ]
        return {**asdict(self), "choices": told, "explained": self.explained}

    def _repr_html_(self) -> str:
        """Return what a notebook shows: the choices, the numbers, the explanations."""
        from attentest.comparison.notebook import comparison  # it reads what is defined here

        return comparison(self)
