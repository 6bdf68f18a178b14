"""The result of a comparison, as plain values."""

from dataclasses import asdict, dataclass
from typing import Any

from attentest.analysis.identify.finding import format_value
from attentest.results.html_table import paragraph, table
from attentest.results.wording import PAPER
from attentest.studies.comparison.example import Example
from attentest.studies.comparison.parts import (
    NOT_EXPLAINED,
    ChoiceRow,
    Departure,
    Explanation,
    StepRow,
)
from attentest.studies.comparison.pictures import Picture
from attentest.studies.comparison.words import in_full, in_short, reasons
from attentest.studies.participants import Failure


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

        Each backend has a key with the option that it uses, None where that is not known.
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
        choices = [
            asdict(row)
            | {name: getattr(row, name) for name in ("paper", "why", "clause", "demand")}
            for row in self.choices
        ]
        return {**asdict(self), "choices": choices, "explained": self.explained}

    def _repr_html_(self) -> str:
        """Return the choices, the differences from the first backend, and every explanation."""
        first, *others = self.backends or ("",)
        rows = [
            (
                "*" if row.differs else "",
                row.choice,
                "(silent)" if row.paper is None else format_value(row.paper),
                *("" if value is None else format_value(value) for value in row.values),
            )
            for row in self.choices
            if row.is_known
        ]
        steps = [
            (row.step, *(None if one is None else f"{one:.2g}" for one in row.outputs))
            for row in self.steps
            if any(one is not None for one in row.outputs)
        ]
        lines = [line for one in self.explanations if one.first == first for line in in_full(one)]
        lines += [in_short(one) for one in self.explanations if one.first != first]
        lines += [f"{one.backend} was not compared: {one.reason}" for one in self.failures]
        return "".join(
            [
                table(("", "choice", PAPER, *self.backends), rows),
                *map(paragraph, reasons(self.choices)),
                table((f"apart from {first}", *others), steps) if steps else "",
                *map(paragraph, (*self.notes, *lines)),
            ]
        )
