"""The line of a wrong answer: found once for each component, and proved for each violation."""

import linecache
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from attentest.analysis.lines.alignment import Alignment
from attentest.analysis.lines.cases import Case, own_cases, wrong_calls
from attentest.analysis.lines.explain import Explanation, explain, explain_extra
from attentest.analysis.lines.formula import Step as FormulaStep
from attentest.analysis.lines.readings import is_silent, readings
from attentest.analysis.lines.recording import Operation, Place, Recording
from attentest.analysis.lines.search import Finding, cures, search
from attentest.harness.subject import Step, Subject
from attentest.results.verdict import Location

SECONDS = 1.2
"""Limit of the search in one component, in seconds of this thread's CPU."""


@dataclass(frozen=True)
class Found:
    """A line and the operation in it."""

    location: Location
    finding: Finding


Known = dict[tuple[str, str], Found | None]
"""The line of each component, or method of it, that was searched; None where there is none."""


def locate(subject: Subject, steps: Sequence[Step], known: Known) -> Location | None:
    """Return the line at which the wrong answer among `steps` begins, None where unknown.

    It is confirmed where the reference's value at that line makes this very answer right. `known`
    are the lines found so far, by component.
    """
    wrong = next(wrong_calls(subject, steps), None)
    if wrong is None:
        return None
    key = wrong.question.probe.component, wrong.question.method
    if key not in known:
        known[key] = _first(subject, *key)
    found = known[key]
    alignment = Alignment(wrong)
    if alignment.final is None:
        return None
    if found is not None and cures(found.finding, alignment):
        return found.location
    if found is not None and found.finding.cured and not found.location.confirmed:
        return found.location  # it is right under other choices than those of the verdict
    other = _found(alignment, time.thread_time() + SECONDS / 2)
    if other is not None and other.location.confirmed:
        return other.location
    best = found or other
    return None if best is None else replace(best.location, confirmed=False)


def _first(subject: Subject, component: str, method: str) -> Found | None:
    """Return the line of the first wrong call that can be cured, of any if none can."""
    end = time.thread_time() + SECONDS
    best: Found | None = None
    for alignment in _aligned(own_cases(subject, component, method), end):
        found = _found(alignment, time.thread_time() + SECONDS / 2)
        if found is not None and found.location.confirmed:
            return found
        best = best or found
        read = [_found(other, end) for other in readings(alignment, end)]
        cured = [one for one in read if one is not None and one.finding.cured]
        if cured:
            return next((one for one in cured if one.location.confirmed), cured[0])
    return best


def _aligned(calls: Iterator[Case], end: float) -> Iterator[Alignment]:
    for case in calls:
        alignment = Alignment(case)
        if alignment.final is not None:
            yield alignment
        if time.thread_time() > end:
            return


def _found(alignment: Alignment, end: float) -> Found | None:
    """Return the line at which the wrong answer of a call begins; None where unknown."""
    if alignment.final is None:
        return None
    finding = search(alignment, end)
    if finding is None:
        return None
    said = _explained(alignment, finding)
    place = _blamed(alignment, finding, said.step)
    if place is None:
        return None
    code = linecache.getline(place.file, place.line).strip()
    if not code:
        return None
    same = is_silent(alignment.case.choices, alignment.case.subject.choices)
    confirmed = finding.cured and same and _alone(alignment, finding)
    location = Location(
        place.file, place.line, code, said.step.name, said.expected, said.computed, confirmed
    )
    return Found(location, finding)


def _explained(alignment: Alignment, finding: Finding) -> Explanation:
    value = finding.operation.outputs[0]
    if finding.skipped:
        step = finding.step
        return Explanation(step, step.text, f"{step.inputs[0].text}, unchanged", exact=True)
    if finding.kept is not None:
        kept = finding.kept.array
        return explain_extra(value.array, kept, finding.step, alignment.matcher)
    assert finding.actual is not None
    given = alignment.given(value)
    return explain(finding.actual, finding.step, alignment.covered, given, alignment.matcher)


def _alone(alignment: Alignment, finding: Finding) -> bool:
    """Say whether all that the operation was made from is right, or of its own line."""
    if finding.skipped:
        return True
    value = finding.operation.outputs[0]
    own = finding.operation.places[0][:2]
    return all(
        one.made is not None and one.made.places[:1] and one.made.places[0][:2] == own
        for one in alignment.behind(value)
    )


def _blamed(alignment: Alignment, finding: Finding, wrong: FormulaStep) -> Place | None:
    """Return the line that could have done it right.

    A function that was not given what is missing is not to blame, but the one that called it.
    """
    operation = finding.operation
    if finding.kept is not None or len(operation.places) < 2:
        return operation.place
    missing = _missing(alignment, finding)
    if missing:
        look = Recording(look_at=operation.number, own=alignment.own)
        alignment.case.run(look)
        for place, arrays in zip(operation.places, look.seen_at, strict=False):
            for array in arrays:
                if any(piece.step.number in missing for piece in alignment.matcher.pieces(array)):
                    return place
    if wrong.part != finding.step.part or finding.skipped:
        return _common(operation, wrong) or operation.place
    return operation.place


def _common(operation: Operation, wrong: FormulaStep) -> Place | None:
    """Return the line of the function that made what the operation was given, and calls it."""
    makers = [
        {(place.file, place.function) for place in one.made.places}
        for one in operation.inputs
        if one.made is not None and one.made.places
    ]
    for place in operation.places:
        if any((place.file, place.function) in one for one in makers):
            return place
    return operation.places[1] if len(operation.places) > 1 else None


def _missing(alignment: Alignment, finding: Finding) -> set[int]:
    """Return the steps that the right value is made from, and the wrong one is not."""
    steps = {one.number: one for one in alignment.case.formula.steps}
    needed = {
        number
        for number in alignment.neighbours(finding.step)
        if steps[number].name not in alignment.case.formula.parameters
    }
    return needed - alignment.given(finding.operation.outputs[0])
