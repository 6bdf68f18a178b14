"""The explanation of different numbers: the choices in which two backends differ."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from math import isfinite
from typing import NamedTuple

from attentest.analysis.diagnosis import explain
from attentest.analysis.identify.finding import same
from attentest.harness.arithmetic import unrounded
from attentest.harness.tolerances import largest
from attentest.studies.comparison.example import Example
from attentest.studies.comparison.parts import (
    BOUND,
    EQUAL,
    EXPLAINED,
    NOT_EXPLAINED,
    Departure,
    Explanation,
    Flip,
)
from attentest.studies.comparison.recording import Recording, furthest, of_oracle
from attentest.studies.comparison.steps import parting
from attentest_spec import CHOICES, Choices
from attentest_spec.choices import Value
from attentest_spec.precision import epsilon

Oracle = Callable[[Choices], Recording]

TABLES = ("position_arithmetic", "rotary_arithmetic")
"""Choices by which tables of sines and cosines are computed in float32."""

_SAFETY = 8.0
"""Constant in front of a rounding that was measured once."""


class Known(NamedTuple):
    """The name of a backend, the choices it is taken to make, its steps.

    `told` are the choices that it declares or shows; of the others nothing is known.
    """

    name: str
    choices: Choices
    told: frozenset[str]
    recording: Recording


def explained(
    first: Known,
    other: Known,
    own: Mapping[str, Departure],
    oracle: Oracle,
    example: Example,
) -> Explanation:
    """Return why what `other` did is not what `first` did.

    `own` tells by their names where each leaves the oracle under its own choices.
    """
    where = parting(first.recording, other.recording, example)
    astray = {name: own[name] for name in (first.name, other.name) if own[name].step}
    flips = flipped(first.choices, other.choices)
    search = _Search(first.choices, other, oracle, example)
    status, left = EQUAL, None
    options: tuple[Flip, ...] = ()
    if where.difference > BOUND:
        if astray or not search.fits(flips):
            return Explanation(first.name, other.name, NOT_EXPLAINED, where, astray=astray)
        options = search.least(flips)
        left = search.left(options)
        status = EXPLAINED if options else EQUAL  # where both round, and not to the same
    both = first.told & other.told
    silent = tuple(flip for flip in flips if flip.choice in both and flip not in options)
    return Explanation(first.name, other.name, status, where, options, silent, left, astray)


def room(choices: Choices, oracle: Oracle, example: Example) -> float:
    """Return how far numbers under `choices` may be from the oracle's and count as the same.

    Two correct softmaxes in float32 lie as far apart as each does from the one that rounds nothing.
    The sines and cosines of a table may besides be those of an angle that is wrong by some units of
    float32 for each position, as the frequencies are rounded before they are multiplied.
    """
    smooth = unrounded(choices)
    exact = smooth.but(**dict.fromkeys(TABLES, "as-computed"))
    if exact == choices and example.precision == "float64":
        return BOUND
    found = oracle(exact)
    near = _of_precision(found, exact, example)
    longest = max(len(example.source[0]), len(example.target[0]))
    of_sums = _finite(furthest(oracle(choices.but(**_of(exact, TABLES))), found, example))
    of_tables = _finite(furthest(oracle(smooth), found, example))
    return near + _SAFETY * (of_sums + longest * of_tables)


def _of_precision(found: Recording, choices: Choices, example: Example) -> float:
    """Return how far correct numbers in the precision of `example` may be from those `found`.

    It is measured by what the rounding of the weights and the inputs makes of all steps.
    """
    if example.precision == "float64":
        return BOUND
    components = tuple(dict.fromkeys(place.component for place in found))
    exact = of_oracle(choices, components, replace(example, precision="float64"))
    size = max((largest(step.output) for step in found.values()), default=0.0)
    apart = _finite(furthest(found, exact, example))
    # Each step adds a rounding of its own to those of the weights and the inputs.
    return BOUND + 4 * _SAFETY * max(apart, epsilon(example.precision) * size)


def _finite(difference: float) -> float:
    """Return `difference`, and 0 for NaN and infinity, which are no bound."""
    return difference if isfinite(difference) else 0.0


def _of(choices: Choices, names: Collection[str]) -> dict[str, Value]:
    return {name: choices[name] for name in names}


def flipped(one: Choices, other: Choices) -> tuple[Flip, ...]:
    """Return the choices that are not the same."""
    return tuple(
        Flip(name, one[name], other[name]) for name in CHOICES if not same(one[name], other[name])
    )


def applied(choices: Choices, flips: Collection[Flip]) -> Choices:
    """Return `choices` with the options of the other."""
    return choices.but(**{flip.choice: flip.other for flip in flips})


class _Search:
    """The search for the choices that make the oracle of `base` do what the `other` did."""

    def __init__(self, base: Choices, other: Known, oracle: Oracle, example: Example) -> None:
        self._base = base
        self._wanted = other.recording
        self._oracle = oracle
        self._example = example
        self._room = room(other.choices, oracle, example)

    def fits(self, flips: Collection[Flip]) -> bool:
        """Say whether the oracle does what was wanted with `flips` made."""
        return self.left(flips) is not None

    def left(self, flips: Collection[Flip]) -> float | None:
        """Return the difference that is left with `flips` made; None beyond the bound.

        There is room for roundings only where both sides round: one that does not is no excuse.
        """
        choices = applied(self._base, flips)
        bound = min(self._room, room(choices, self._oracle, self._example))
        variant = {"": lambda: self._oracle(choices)}
        found = explain(self._wanted, variant, bound, measure=self._apart)
        return found[0].difference if found else None

    def _apart(self, wanted: Recording, found: Recording) -> float:
        return furthest(wanted, found, self._example)

    def least(self, flips: tuple[Flip, ...]) -> tuple[Flip, ...]:
        """Return those of `flips` that are needed: without any one of them the numbers differ."""
        for flip in flips:
            fewer = tuple(one for one in flips if one != flip)
            if self.fits(fewer):
                return self.least(fewer)
        return flips
