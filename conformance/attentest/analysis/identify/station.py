"""Stations: a part with parameters and inputs that separate options, and its answer to them."""

from collections.abc import Iterable, Mapping
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from attentest.analysis.diagnosis import explain
from attentest.harness.copies import cast
from attentest.harness.subject import Answer, Probe
from attentest.harness.tolerances import as_floats, distance, error_bound
from attentest_spec import Choices, Setting
from attentest_spec.choices import PAPER
from attentest_spec.contract import Input
from attentest_spec.generator import generator
from attentest_spec.oracles import ORACLES
from attentest_spec.parameters import draw, tied
from attentest_spec.setting import Array, Floats

SECONDS = 60.0
"""Time limit of one search, far above what any search takes."""

_OF_GENERATOR = ("output", "logit_scale", "logit_cap")
"""Choices that nothing before the generator of a model depends on."""

Candidate = tuple[Choices, float]
"""Choices, and the difference between the answer and the reference under them."""


@dataclass(frozen=True)
class Station:
    """The answer of a part to `inputs`; `probe` holds the parameters of that call.

    `actual` is the answer from the column `first` on: those before it are not compared. `known`
    holds the answers of the reference that were computed before, and `states` what its generators
    were given.
    """

    probe: Probe
    inputs: tuple[Input, ...]
    actual: Floats
    first: int = 0
    known: dict[Choices, Floats] = field(default_factory=dict, compare=False, repr=False)
    states: dict[Choices, Floats] = field(default_factory=dict, compare=False, repr=False)

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
        return cls(own, given, _from(own.output(*given), first), first)

    def predicted(self, choices: Choices) -> Floats:
        """Return the answer of the reference under `choices`."""
        if choices not in self.known:
            self.known[choices] = self._predicted(choices)
        return self.known[choices]

    def _predicted(self, choices: Choices) -> Floats:
        given = Setting(self.probe.sizes, choices, self.probe.parameters)
        whole = self.probe.component in ("model", "language_model")
        with np.errstate(all="ignore"):  # a wrong option may overflow where the right one does not
            oracle = self._of_model if whole else ORACLES[self.probe.component]
            result = oracle(given, *self.inputs)
        return self._compared(Answer.of(result))

    def _of_model(self, given: Setting, *inputs: Input) -> Floats:
        """Return what the oracle of models does; options of the generator alone share the rest."""
        rest = given.choices.but(**{axis: PAPER[axis] for axis in _OF_GENERATOR})
        if rest in self.states:
            return generator(given.under("generator"), self.states[rest])

        def observe(part: str, received: tuple[Any, ...], _: object) -> None:
            if part == "generator":
                self.states[rest] = received[0]

        output: Floats = ORACLES[self.probe.component](replace(given, observe=observe), *inputs)
        return output

    def _compared(self, answer: Answer) -> Floats:
        return _from(answer.output, self.first)

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


def _from(output: Array, first: int) -> Floats:
    """Return the columns of `output` from `first` on; a single number has none."""
    return as_floats(output)[..., first:] if first else as_floats(output)


def _cast(value: Input, precision: str) -> Input:
    if isinstance(value, np.ndarray) and value.dtype.kind == "f":
        return cast(value, precision)
    return value
