"""What explains that two backends give unlike numbers: the choices that they settle differently."""

from collections.abc import Callable, Collection, Mapping
from typing import NamedTuple

from attentest.comparison.example import Example
from attentest.comparison.recording import Recording, furthest
from attentest.comparison.result import (
    BOUND,
    EQUAL,
    EXPLAINED,
    NOT_EXPLAINED,
    Departure,
    Explanation,
    Flip,
)
from attentest.comparison.steps import parting
from attentest.diagnosis import explain
from attentest.identify.finding import same
from attentest_spec import CHOICES, Choices

Oracle = Callable[[Choices], Recording]


class Known(NamedTuple):
    """What a backend is called, the choices it is taken to make, what it did.

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
    search = _Search(first.choices, other.recording, oracle, example)
    status, left = EQUAL, None
    options: tuple[Flip, ...] = ()
    if where.difference > BOUND:
        if astray or not search.fits(flips):
            return Explanation(first.name, other.name, NOT_EXPLAINED, where, astray=astray)
        status, options = EXPLAINED, search.least(flips)
        left = search.left(options)
    both = first.told & other.told
    silent = tuple(flip for flip in flips if flip.choice in both and flip not in options)
    return Explanation(first.name, other.name, status, where, options, silent, left, astray)


def flipped(one: Choices, other: Choices) -> tuple[Flip, ...]:
    """Return the choices that are not the same."""
    return tuple(
        Flip(name, one[name], other[name]) for name in CHOICES if not same(one[name], other[name])
    )


def applied(choices: Choices, flips: Collection[Flip]) -> Choices:
    """Return `choices` with the options of the other."""
    return choices.but(**{flip.choice: flip.other for flip in flips})


class _Search:
    """The search for the choices that make the oracle do what was `wanted`."""

    def __init__(self, base: Choices, wanted: Recording, oracle: Oracle, example: Example) -> None:
        self._base = base
        self._wanted = wanted
        self._oracle = oracle
        self._example = example

    def fits(self, flips: Collection[Flip]) -> bool:
        """Say whether the oracle does what was wanted with `flips` made."""
        return self.left(flips) is not None

    def left(self, flips: Collection[Flip]) -> float | None:
        """Return the difference that is left with `flips` made; None beyond the bound."""
        variant = {"": lambda: self._oracle(applied(self._base, flips))}
        found = explain(self._wanted, variant, BOUND, measure=self._apart)
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
