"""Failures that were explained, or searched in vain: they are not searched for in full again."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from attentest.results.causes import is_exact
from attentest.results.verdict import Location, Verdict

Line = tuple[str, int, str]
"""The file and the number of a line, and the step of the reference that differs there."""

SEARCHES = 2
"""The number of searches in vain for one component, from which on they are short."""


@dataclass
class Searches:
    """Failures for which no full search is needed, of one backend.

    A mistake that is in no catalogue breaks most clauses of a component, and each full search costs
    seconds. `exceptions` are ends of tracebacks, `lines` those at which wrong numbers were proved
    to begin or a known mistake is, and `in_vain` counts other wrong answers by component.
    """

    exceptions: set[str] = field(default_factory=set)
    lines: set[Line] = field(default_factory=set)
    in_vain: Counter[str] = field(default_factory=Counter)

    def knows(self, component: str, location: Location | None) -> bool:
        """Say whether a full search for a wrong answer, which begins at `location`, is in vain."""
        return line_of(location) in self.lines or self.in_vain[component] >= SEARCHES

    def add(self, component: str, verdict: Verdict, *, searched: bool) -> None:
        """Remember a wrong answer, for which causes were `searched` in full or not."""
        if searched and all(one.kind == "complaint" for one in verdict.diagnosis):
            self.in_vain[component] += 1
        self.lines.update(settled_lines([verdict]))


def settled_lines(verdicts: Iterable[Verdict]) -> Iterator[Line]:
    """Yield the lines of mistakes that are known, or that no catalogue has: proved ones."""
    for one in verdicts:
        explained = any(map(is_exact, one.diagnosis[:1]))
        if one.location is not None and (one.location.confirmed or explained):
            yield line_of(one.location)


def line_of(location: Location | None) -> Line:
    """Return the line of a location, with the step in its part: that of no file for none."""
    step = location.step.rpartition(".")[2] if location else ""
    return (location.file, location.line, step) if location else ("", 0, "")
