"""One backend step by step, beside the oracle under the same choices."""

from dataclasses import dataclass, replace
from typing import Any

from attentest.results.html_table import paragraph, table
from attentest.studies.comparison.compare import common, in_process
from attentest.studies.comparison.example import EXAMPLES, Example
from attentest.studies.comparison.explaining import room
from attentest.studies.comparison.notes import cuts, notes
from attentest.studies.comparison.participant import account, local, recording
from attentest.studies.comparison.parts import BOUND, Departure
from attentest.studies.comparison.recording import Event, Place, apart, of_oracle
from attentest.studies.comparison.steps import aligned, parting
from attentest.studies.comparison.words import departure
from attentest.studies.participants import Participant
from attentest.targets.resolve import Target
from attentest_spec.choices import Value
from attentest_spec.setting import Floats


@dataclass(frozen=True)
class TraceRow:
    """One step: what went in, what came out, and what comes out of the oracle.

    `output` is None where the backend does not show the step, `expected` where the oracle does not;
    `difference` is None where the two cannot be compared; up to `room` they count as equal.
    """

    step: str
    inputs: tuple[Floats, ...]
    output: Floats | None
    expected: Floats | None
    difference: float | None
    room: float = BOUND


@dataclass(frozen=True)
class Trace:
    """The steps of a backend for an example, under its `choices`.

    `parting` tells where it leaves the oracle: its step is "" where it nowhere does.
    """

    backend: str
    choices: dict[str, Value]
    rows: tuple[TraceRow, ...]
    parting: Departure
    notes: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain values, arrays as nested lists."""
        rows = [
            {
                **vars(row),
                "inputs": [one.tolist() for one in row.inputs],
                "output": None if row.output is None else row.output.tolist(),
                "expected": None if row.expected is None else row.expected.tolist(),
            }
            for row in self.rows
        ]
        return {**vars(self), "rows": rows, "parting": vars(self.parting)}

    def step_rows(self) -> list[dict[str, Any]]:
        """Return a dictionary for every step, such as a data frame is made of."""
        return [
            {
                "step": row.step,
                "shape": None if row.output is None else row.output.shape,
                "apart": row.difference,
            }
            for row in self.rows
        ]

    def _repr_html_(self) -> str:
        """Return every step with its shapes and its difference from the reference."""
        rows = [
            (
                row.step,
                ", ".join(str(one.shape) for one in row.inputs),
                None if row.output is None else str(row.output.shape),
                None if row.difference is None else f"{row.difference:.1e}",
            )
            for row in self.rows
        ]
        where = self.parting
        outcome = (
            departure(where) if where.step else f"equal to the reference, to {where.difference:.0e}"
        )
        headings = ("step", "in", "out", "differs from the reference by")
        return table(headings, rows) + paragraph(f"{self.backend}: {outcome}.")


def follow(target: Target, example: Example = EXAMPLES["small"]) -> Trace:
    """Follow a backend, or the one that `target` leads to, in this process and without a limit.

    Raises UnknownName and LoadFailure for a target that leads to nothing, Unavailable where the
    backend cannot be called, and BadExample where it provides nothing.
    """
    ((name, participant),) = in_process([target], local).items()
    return trace(name, participant, example)


def trace(name: str, participant: Participant, example: Example) -> Trace:
    """Return what `participant`, called `name`, does with `example`, beside the oracle.

    Raises what the participant raises, and BadExample where it provides nothing.
    """
    known = account(participant)
    components = common({name: known})
    limits = {name: known.limits}
    fitted = example.fitted(limits).in_shared_precision(limits)
    done = recording(participant, known.choices, components, fitted)
    right = of_oracle(known.choices, components, fitted)
    near = room(known.choices, lambda one: of_oracle(one, components, fitted), fitted)
    kept = cuts(done, right, fitted, near)
    return Trace(
        name,
        known.choices.as_dict(),
        tuple(
            replace(_row(place, kept.get(place), right.get(place), fitted), room=near)
            for place in aligned([right, kept])
        ),
        parting(right, kept, fitted, near),
        notes({name: known}, {name: done}, {name: kept}, components, fitted),
    )


def _row(place: Place, done: Event | None, right: Event | None, example: Example) -> TraceRow:
    shown = done or right
    assert shown is not None  # it stands in one of the two
    return TraceRow(
        str(place),
        shown.inputs,
        done.output if done else None,
        right.output if right else None,
        apart(right, done, place, example) if right and done else None,
    )


def departs(row: TraceRow) -> bool:
    """Say whether the backend leaves the oracle at this step."""
    return row.difference is not None and row.difference > row.room
