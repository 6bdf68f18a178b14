"""Failures that no mistake of the catalogue explained, so that they are not searched for again."""

from collections import Counter
from dataclasses import dataclass, field

from attentest.results.verdict import Location

Line = tuple[str, int, str]
"""The file and the number of a line, and the step of the reference that differs there."""

SEARCHES = 2
"""The number of searches in vain for one component, from which on they are short."""


@dataclass
class Unexplained:
    """Failures without a likely cause, of one backend.

    A mistake that is in no catalogue breaks most clauses of a component, and each full search costs
    seconds. `exceptions` are ends of tracebacks, `lines` those at which wrong numbers were proved
    to begin, and `searches` count other wrong answers by component.
    """

    exceptions: set[str] = field(default_factory=set)
    lines: set[Line] = field(default_factory=set)
    searches: Counter[str] = field(default_factory=Counter)

    def knows(self, component: str, location: Location | None) -> bool:
        """Say whether a full search for a wrong answer, which begins at `location`, is in vain."""
        return line_of(location) in self.lines or self.searches[component] >= SEARCHES

    def add(self, component: str, location: Location | None) -> None:
        """Remember a wrong answer that a full search did not explain."""
        self.searches[component] += 1
        if location is not None and location.confirmed:
            self.lines.add(line_of(location))


def line_of(location: Location | None) -> Line:
    """Return the line of a location, that of no file where there is none."""
    return (location.file, location.line, location.step) if location else ("", 0, "")
