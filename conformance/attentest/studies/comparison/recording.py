"""The recording of what a backend does with an example, step by step."""

from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any

import numpy as np

from attentest.analysis.identify.structure import asking
from attentest.harness.errors import Absent, BackendError
from attentest.harness.oracle import Reference
from attentest.harness.subject import Probe, Subject
from attentest.harness.tolerances import as_floats, distance
from attentest.results.text import line
from attentest.studies.comparison.example import Example
from attentest.studies.comparison.inputs import inputs, judged, weights
from attentest_spec import Backend, Choices, Step, Traceable
from attentest_spec.setting import Floats

RESULT = "result"
"""The last step of every component: what it returns."""

OUTWARD = ("encode", "decode", RESULT)
"""The steps that the contract defines; those inside are seen where a module is a part."""


@dataclass(frozen=True, order=True)
class Place:
    """Identity of the step: the component that was called, the part inside of it, its call."""

    component: str
    part: str
    call: int = 0

    def __str__(self) -> str:
        """Return it as a reader finds it: a whole model is not named."""
        own = self.part if self.component == "model" else f"{self.component}: {self.part}"
        return f"{own} (call {self.call + 1})" if self.call else own


@dataclass(frozen=True)
class Event:
    """Inputs of a step, masks left out, and its result."""

    inputs: tuple[Floats, ...]
    output: Floats

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain values, bit-exact."""
        return {"inputs": [_plain(one) for one in self.inputs], "output": _plain(self.output)}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> "Event":
        """Read an event back from plain values."""
        return cls(tuple(_array(one) for one in plain["inputs"]), _array(plain["output"]))


Recording = Mapping[Place, Event]


def record(
    backend: Backend, choices: Choices, components: Sequence[str], example: Example
) -> dict[Place, Event]:
    """Return what the `components` of `backend` do with `example`.

    The weights are those that it can hold under `choices`, whatever it declares. Raises what a
    Subject raises where a component cannot be built, loaded or called.
    """
    found: dict[Place, Event] = {}
    for component in components:
        subject = Subject(asking(backend, choices), choices=choices, precision=example.precision)
        probe = subject.part(component, example.sizes)
        if held := weights(example, component, choices):
            probe.load(held)
        for step in [*_steps(probe, example), *_outputs(probe, example)]:
            arrays = tuple(as_floats(one) for one in step.inputs if one.dtype.kind in "fVi")
            place = Place(component, line(step.part), step.call)
            found[place] = Event(arrays, as_floats(step.output))
    return found


def of_oracle(choices: Choices, components: Sequence[str], example: Example) -> dict[Place, Event]:
    """Return what the oracles do with `example` under `choices`."""
    with np.errstate(all="ignore"):  # a wrong option may overflow where the right one does not
        return record(Reference(choices), choices, components, example)


def _steps(probe: Probe, example: Example) -> list[Step]:
    """Return what the parts inside did; nothing where it cannot be seen.

    Watching may fail where a call does not, as with a fused path of tensors without sizes.
    """
    if not isinstance(probe.part, Traceable):
        return []
    given = inputs(example, probe.component)
    try:
        return probe.do("following its steps", lambda part: part.steps(given))  # type: ignore[attr-defined]  # it is Traceable
    except (Absent, BackendError):
        return []


def _outputs(probe: Probe, example: Example) -> list[Step]:
    """Return the outputs: of a model's `encode` and `decode` where it has them, and the whole."""
    given = inputs(example, probe.component)
    found = []
    if probe.component == "model":
        source, target = given
        try:
            memory = probe.output(source, method="encode")
            found = [
                Step("encode", 0, (), memory),
                Step("decode", 0, (memory,), probe.output(target, memory, source, method="decode")),
            ]
        except (Absent, BackendError):
            pass  # `attentest run` says what is wrong with them
    return [*found, Step(RESULT, 0, (), probe.output(*given))]


def apart(
    one: Event, other: Event, place: Place, example: Example, *, given: bool = False
) -> float | None:
    """Return how far two outputs are apart, or with `given` two first inputs, pads left out.

    None where they cannot be compared: one is not there, or inside they have different shapes.
    """
    first, second = (_looked_at(event, given=given) for event in (one, other))
    if first is None or second is None:
        return None
    if first.shape != second.shape:
        return inf if place.part in OUTWARD else None
    rows = judged(example, place.component, place.part)
    if rows is not None and first.shape[:2] == rows.shape:
        first, second = first[rows], second[rows]
    return distance(first, second)


def _looked_at(event: Event, *, given: bool) -> Floats | None:
    if given:
        return event.inputs[0] if event.inputs else None
    return event.output


def furthest(one: Recording, other: Recording, example: Example) -> float:
    """Return the largest difference of all steps that both have; infinite where none can be."""
    told = [
        difference
        for place in one
        if place in other
        and (difference := apart(one[place], other[place], place, example)) is not None
    ]
    return max(told, default=inf)


def _plain(values: Floats) -> dict[str, Any]:
    numbers = np.asarray(values, dtype="<f8").tobytes()
    return {"shape": list(values.shape), "float64": b64encode(numbers).decode("ascii")}


def _array(plain: Mapping[str, Any]) -> Floats:
    numbers = np.frombuffer(b64decode(plain["float64"]), dtype="<f8")
    return numbers.astype(np.float64).reshape(plain["shape"])
