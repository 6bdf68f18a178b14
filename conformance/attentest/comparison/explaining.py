"""What explains that two backends give unlike numbers: the choices that they settle differently."""

from collections.abc import Callable, Collection, Mapping

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


Known = tuple[str, Choices, Recording]
"""What a backend is called, the choices it is taken to make, and what it did."""


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
    (one, base, done), (two, theirs, wanted) = first, other
    flips = flipped(base, theirs)
    where = parting(done, wanted, example)
    astray = {name: own[name] for name in (one, two) if own[name].step}
    if where.difference <= BOUND:
        return Explanation(one, two, EQUAL, where, silent=flips, astray=astray)
    if astray:
        return Explanation(one, two, NOT_EXPLAINED, where, astray=astray)
    search = _Search(base, wanted, oracle, example)
    if not search.fits(flips):
        return Explanation(one, two, NOT_EXPLAINED, where, astray=astray)
    options = search.least(flips)
    silent = tuple(flip for flip in flips if flip not in options)
    left = furthest(wanted, oracle(applied(base, options)), example)
    return Explanation(one, two, EXPLAINED, where, options, silent, left, astray)


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
        variant = {"": lambda: self._oracle(applied(self._base, flips))}
        return bool(explain(self._wanted, variant, BOUND, measure=self._apart))

    def _apart(self, wanted: Recording, found: Recording) -> float:
        return furthest(wanted, found, self._example)

    def least(self, flips: tuple[Flip, ...]) -> tuple[Flip, ...]:
        """Return those of `flips` that are needed: without any one of them the numbers differ."""
        for flip in flips:
            fewer = tuple(one for one in flips if one != flip)
            if self.fits(fewer):
                return self.least(fewer)
        return flips
