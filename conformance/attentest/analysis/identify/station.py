"""Stations: a part with parameters and inputs that separate options, and its answer to them."""

from collections.abc import Iterable, Mapping
from copy import copy
from dataclasses import dataclass, field

import numpy as np

from attentest.analysis.diagnosis import explain
from attentest.harness.copies import cast
from attentest.harness.subject import Answer, Probe
from attentest.harness.tolerances import as_floats, distance, error_bound
from attentest_spec import Choices, Setting
from attentest_spec.contract import Input
from attentest_spec.oracles import ORACLES
from attentest_spec.parameters import draw, tied
from attentest_spec.setting import Floats

SECONDS = 60.0
"""Time limit of one search, far above what any search takes."""

Candidate = tuple[Choices, float]
"""Choices, and the difference between the answer and the reference under them."""


@dataclass(frozen=True)
class Station:
    """The answer of a part to `inputs`; `probe` holds the parameters of that call.

    `actual` is the answer from the column `first` on: those before it are not compared. `known`
    holds the answers of the reference that were computed before.
    """

    probe: Probe
    inputs: tuple[Input, ...]
    actual: Floats
    first: int = 0
    known: dict[Choices, Floats] = field(default_factory=dict, compare=False, repr=False)

    @classmethod
    def of(
        cls,
        probe: Probe,
        parameters: Mapping[str, Floats],
        inputs: tuple[Input, ...],
        first: int = 0,
    ) -> "Station":
        """Load `parameters` into the part of `probe`, call it, and store the answer."""
        probe.subject.begin()
        own = copy(probe)  # a later station loads other parameters into the same part
        rounded = {name: cast(values, probe.precision) for name, values in parameters.items()}
        if rounded:  # a part without parameters need not know how to load
            own.load(rounded)
        given = tuple(_cast(value, probe.precision) for value in inputs)
        answer = as_floats(own.output(*given))
        return cls(own, given, answer[..., first:] if first else answer, first)

    def predicted(self, choices: Choices) -> Floats:
        """Return the answer of the reference under `choices`."""
        if choices not in self.known:
            self.known[choices] = self._predicted(choices)
        return self.known[choices]

    def _predicted(self, choices: Choices) -> Floats:
        given = Setting(self.probe.sizes, choices, self.probe.parameters)
        with np.errstate(all="ignore"):  # a wrong option may overflow where the right one does not
            result = ORACLES[self.probe.component](given, *self.inputs)
        return self._compared(Answer.of(result))

    def _compared(self, answer: Answer) -> Floats:
        output = as_floats(answer.output)
        return output[..., self.first :] if self.first else output

    def distance(self, choices: Choices) -> float:
        """Return the difference between the answer and the reference under `choices`."""
        return self._distance(self.predicted(choices))

    def _distance(self, expected: Floats) -> float:
        same = expected.shape == self.actual.shape
        return distance(self.actual, expected) if same else np.inf

    def tolerance(
        self, choices: Choices, difference: float = np.inf, *, rounded: bool = True
    ) -> float:
        """Return the error that correct code may make here under `choices`.

        Where it is not `rounded`, of code that rounds inside exactly as the reference does.
        """
        return self._tolerance(choices, self.predicted(choices), difference, rounded=rounded)

    def _tolerance(
        self, choices: Choices, expected: Floats, difference: float, *, rounded: bool = True
    ) -> float:
        with np.errstate(all="ignore"):
            return error_bound(
                self.probe,
                self.inputs,
                expected,
                pick=self._compared,
                choices=choices,
                difference=difference,
                rounded=rounded,
            )

    def fits(self, choices: Choices, *, rounded: bool = True) -> bool:
        """Return whether the answer is the reference's under `choices`, up to rounding."""
        expected = self.predicted(choices)
        difference = self._distance(expected)
        return difference <= self._tolerance(choices, expected, difference, rounded=rounded)

    def ranked(self, candidates: Iterable[Choices]) -> list[Candidate]:
        """Return the `candidates` with their differences, the closest first."""
        known = {str(number): one for number, one in enumerate(dict.fromkeys(candidates))}
        variants = {name: lambda one=one: self.predicted(one) for name, one in known.items()}
        matches = explain(self.actual, variants, np.inf, SECONDS)
        return [(known[match.name], match.difference) for match in matches]


def parameters_of(component: str, probe: Probe, choices: Choices) -> dict[str, Floats]:
    """Draw random parameters of `component` under `choices`, always the same."""
    return draw(component, probe.sizes, choices, np.random.default_rng(3))


def retied(
    parameters: dict[str, Floats], component: str, probe: Probe, choices: Choices
) -> dict[str, Floats]:
    """Return `parameters` with the twins of tied ones made equal to them again."""
    twins = tied(component, probe.sizes, choices)
    return {name: parameters[twins.get(name, name)] for name in parameters}


def _cast(value: Input, precision: str) -> Input:
    if isinstance(value, np.ndarray) and value.dtype.kind == "f":
        return cast(value, precision)
    return value
