"""The line of a wrong answer: found once for each component, and proved for each violation."""

import linecache
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

from attentest.analysis.lines.alignment import Alignment
from attentest.analysis.lines.callers import (
    differing_call,
    giver_of_axis,
    giver_of_parameters,
    is_residual_sum,
    knowing,
    lacks_last_branch,
    lacks_sum,
    maker_of_last_branch,
    maker_within,
    makers_of_branch,
    takes_each_once,
)
from attentest.analysis.lines.cases import (
    TOLERANCES,
    WHOLE,
    Case,
    clearest,
    own_cases,
    slightly_wrong,
    wrong_calls,
)
from attentest.analysis.lines.earlier import (
    is_earliest,
    made_before,
    step_made_before,
    written_before,
)
from attentest.analysis.lines.explain import (
    EXCHANGED,
    UNEXPLAINED,
    UNUSED,
    Explanation,
    explain,
    explain_argument,
    explain_extra,
    explain_left_out,
    explain_undeclared,
)
from attentest.analysis.lines.formula import Formula
from attentest.analysis.lines.formula import Step as FormulaStep
from attentest.analysis.lines.inputs import FRESH
from attentest.analysis.lines.matching import is_mask, is_rearranged
from attentest.analysis.lines.readings import is_silent, readings, under
from attentest.analysis.lines.recorders import is_jax
from attentest.analysis.lines.recording import Place
from attentest.analysis.lines.search import Finding, again, search
from attentest.harness.subject import Step, Subject
from attentest.results.verdict import Location
from attentest_spec import CHOICES, Choices

SECONDS = 1.2
"""Limit of the search in one component, in seconds of this thread's CPU."""

LONGER = 3.0
"""Factor on it for a whole model, whose choices are tried together with its line."""


@dataclass(frozen=True)
class Found:
    """A line, the operation in it, and what it computes, under the choices it was found with."""

    place: Place
    finding: Finding
    said: Explanation
    choices: Choices
    proved: bool
    confirmed: bool
    covered: int = 0

    @property
    def rank(self) -> tuple[object, ...]:
        """The order of lines under several choices: the surest, then those of the paper's choices.

        Sure are proved ones, known mistakes, and calls that are right with another value.

        Most of the code's values are steps under the author's choices: a mistake that fits under
        others is one by chance.
        """
        other = [
            name for name, one in CHOICES.items() if one.paper not in (None, self.choices[name])
        ]
        sure = (self.proved or self.finding.argument is not None) + self.said.is_known
        known = self.finding.cured, sure, self.covered, self.said.exact, -len(other)
        return tuple(-one for one in known)

    @property
    def is_explained(self) -> bool:
        """Whether it is confirmed, and the formula has words for what is computed there."""
        return self.confirmed and self.said.computed != UNEXPLAINED

    def leads_to(self, other: "Found | None") -> bool:
        """Say whether this line calls what computes the `other` one, and gives it another value.

        Calls of several layers are not cured together by what one of them is given.
        """
        calls = other.finding.operation.places[1:] if other is not None else ()
        return self.confirmed and self.finding.argument is not None and self.place in calls

    def location(self, formula: Formula | None = None, *, confirmed: bool = False) -> Location:
        """Return the line, in words with the sizes of the example of `formula`, if any."""
        said, place = self.said.on(formula) if formula else self.said.sizeless, self.place
        code = linecache.getline(place.file, place.line).strip()
        step = said.step.name
        return Location(place.file, place.line, code, step, said.expected, said.computed, confirmed)


Known = dict[tuple[str, str], Found | None]
"""The line of each component, or method of it, that was searched; None where there is none."""


def locate(
    subject: Subject, steps: Sequence[Step], known: Known, component: str = ""
) -> Location | None:
    """Return the line at which the wrong answer among `steps` begins, None where unknown.

    It is confirmed where the reference's value at that line makes this very answer right. `known`
    are the lines found so far, by component. Where no call is among the steps, parameters of the
    `component` may be too many.
    """
    wrong = clearest(wrong_calls(subject, steps)) or slightly_wrong(subject, steps)
    if wrong is None:
        if component and all(one.question is None for one in steps):
            return _of_parameters(subject, component)
        in_double = _in_double_precision(subject, steps, known)
        return in_double or _of_effect(subject, steps, gradients=True)
    key = wrong.question.probe.component, wrong.question.method
    if key not in known:
        known[key] = _first(subject, *key)
    found = known[key]
    alignment = Alignment(wrong)
    if alignment.final is None:
        return _of_effect(subject, steps)
    if found is not None:
        here = under(alignment, found.choices)
        if here is not None and again(found.finding, here):
            return found.location(here.case.formula, confirmed=found.confirmed)
        if found.finding.cured and not found.confirmed:
            return found.location()
    other = _found(alignment, time.thread_time() + SECONDS / 2)
    if found is not None and found.leads_to(other):
        return found.location()
    if other is not None and (other.confirmed or found is None):
        other = _on_fresh_inputs(other, own_cases(subject, *key, FRESH))
    best = other if other is not None and (other.confirmed or found is None) else found
    if best is None or _is_meant(subject, best):
        return None
    sure = best.confirmed or best.said.is_known
    if not sure and (drawn := _of_effect(subject, steps)) is not None:
        return drawn
    own = (wrong.formula,) if best is other else ()
    return best.location(*own, confirmed=best is other and best.confirmed)


def _is_meant(subject: Subject, found: Found) -> bool:
    """Say whether it is a target mask without padding, as the limits of the code have it."""
    at_end = "target" in subject.limits.right_padded and not found.confirmed
    return at_end and found.said.step.name in ("target mask", "padding mask of the target")


def _in_double_precision(subject: Subject, steps: Sequence[Step], known: Known) -> Location | None:
    """Return the line of a component that is wrong in float64, too; None for other mistakes.

    Half precision is too coarse to tell the steps of a formula: the line is found in float64, and
    the failing example itself proves nothing.
    """
    asked = [one.question for one in steps if one.question is not None]
    if not asked or subject.limits.finest != "float64" or asked[-1].probe.precision in TOLERANCES:
        return None
    key = asked[-1].probe.component, asked[-1].method
    if key not in known:
        other = Subject(
            subject.backend, choices=subject.choices, limits=subject.limits, device=subject.device
        )
        known[key] = _first(other, *key)
    found = known[key]
    return found.location() if found is not None and found.confirmed else None


def _of_parameters(subject: Subject, component: str) -> Location | None:
    """Return the line that makes a module which is not used; it is known for torch alone."""
    if is_jax(subject.backend):
        return None
    from attentest.analysis.lines.effects import idle_part

    return idle_part(subject, component)


def _of_effect(
    subject: Subject, steps: Sequence[Step], *, gradients: bool = False
) -> Location | None:
    """Return the line of a mistake that no value shows; it is known for torch alone."""
    if is_jax(subject.backend):
        return None
    from attentest.analysis.lines import effects

    of_gradients = (effects.root_of_zero, effects.end_of_gradient, effects.weak_fill)
    ways = (*(of_gradients if gradients else ()), effects.draw_in_evaluation)
    return next(filter(None, (one(subject, steps) for one in ways)), None)


def _first(subject: Subject, component: str, method: str) -> Found | None:
    """Return the line of the first wrong call that can be cured, of any if none can."""
    end = time.thread_time() + SECONDS * (LONGER if component in WHOLE else 1.0)
    best: Found | None = None
    for alignment in _aligned(own_cases(subject, component, method), end):
        for found in _read(alignment, end):
            if found.finding.cured:
                return _on_fresh_inputs(found, own_cases(subject, component, method, FRESH))
            best = best or found
    return best and _on_fresh_inputs(best, own_cases(subject, component, method, FRESH))


def _read(alignment: Alignment, end: float) -> list[Found]:
    """Return the lines under the choices of the verdict and under others, the best first."""
    found = _found(alignment, time.thread_time() + SECONDS / 2)
    if found is not None and (found.is_explained or found.finding.exchanged):
        return [found]  # exchanged queries and keys need no other choices
    read = [found, *(_found(other, end) for other in readings(alignment, end))]
    return sorted((one for one in read if one is not None), key=lambda one: one.rank)


def _on_fresh_inputs(found: Found, fresh: Iterator[Case]) -> Found:
    """Return the line, confirmed and explained only as far as other inputs show the same."""
    for alignment in _aligned(fresh, time.thread_time() + SECONDS):
        here = under(alignment, found.choices)
        finding = here and (again(found.finding, here) if found.finding.cured else search(here))
        if here is not None and finding and finding.site == found.finding.site:
            return replace(found, said=found.said.as_far_as(_explained(here, finding)))
    return replace(found, said=found.said.vague, confirmed=False)


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
    place = giver_of_axis(finding.operation, _blamed(alignment, finding, said.step), said)
    if place is None or not linecache.getline(place.file, place.line).strip():
        return None
    choices = alignment.case.choices
    same = is_silent(choices, alignment.case.subject.choices)
    proved = finding.cured and is_earliest(alignment, finding)
    covered = len(alignment.covered_steps)
    if not (proved or said.exact):
        place = written_before(alignment, finding) or place
    if (before := step_made_before(alignment, finding)) is not None:
        place, proved = before, False
    if makers := makers_of_branch(alignment, finding.operation, said.step):
        place, proved = makers[0], proved and len(makers) == 1
    if lacks_last_branch(alignment, finding):  # what is left out leaves no line of its own
        place, proved = maker_of_last_branch(alignment, finding) or place, False
    place, said = made_before(alignment, finding, said) or (place, said)
    return Found(place, finding, said, choices, proved, confirmed=proved and same, covered=covered)


def _explained(alignment: Alignment, finding: Finding) -> Explanation:
    said = _compared(alignment, finding)
    if alignment.unused(said.step) is not None:
        return Explanation(said.step, said.step.text, UNUSED, exact=True)
    if "activation" not in alignment.case.subject.declared:
        return explain_undeclared(said, finding.operation.outputs[0].array)
    return said


def _compared(alignment: Alignment, finding: Finding) -> Explanation:
    value = finding.operation.outputs[0]
    step = finding.step
    if finding.argument is not None:
        return explain_argument(finding.argument, alignment.matcher)
    if finding.unchanged is not None:
        return explain_left_out(finding.unchanged, step, alignment.matcher)
    if finding.kept is not None:
        return explain_extra(value.array, finding.kept.array, step, alignment.matcher)
    if finding.exchanged:
        return Explanation(step, step.text, EXCHANGED, exact=True)
    if finding.actual is None:
        return Explanation(step, step.text, UNEXPLAINED, exact=False)
    given = alignment.given(value)
    return explain(finding.actual, step, alignment.covered, given, alignment.matcher)


def _blamed(alignment: Alignment, finding: Finding, wrong: FormulaStep) -> Place | None:
    """Return the line that could have done it right.

    A function that was not given what is missing is not to blame, but the one that called it.
    """
    operation = finding.operation
    if (idle := alignment.unused(wrong)) is not None:
        return idle.place
    depth = finding.argument.depth if finding.argument else 0
    if finding.kept is not None:
        return operation.place
    if finding.argument is None:
        caller = giver_of_parameters(alignment, operation, wrong)
    else:
        caller = _caller(alignment, finding, depth) if len(operation.places) > 1 else None
    if caller is not None or len(operation.places) < 2:
        return caller or operation.place
    missing = _missing(alignment, finding)
    if missing:
        missing |= {wrong.number} if is_mask(wrong.value) else set()  # that a caller hands in
        known = partial(knowing, alignment, operation, missing)
        able = [*known(bound=lacks_sum(alignment, operation, wrong))] or [*known()]
        if later := [place for number, place in able if number >= depth]:
            return next((one for one in later if not takes_each_once(one)), later[0])
        if not able and _is_of_others(alignment, missing, wrong):
            return _common(alignment, finding, wrong) or operation.place
    if finding.argument is not None:
        elsewhere = finding.leaves_out and not is_residual_sum(finding.step)
        common = elsewhere and _common(alignment, finding, finding.step)
        return common or operation.places[depth]
    elsewhere = wrong.part != finding.step.part and not is_rearranged(wrong, finding.step)
    if elsewhere or finding.leaves_out:
        inner = maker_within(alignment, operation, wrong)
        return inner or _common(alignment, finding, wrong) or operation.place
    return operation.place


def _caller(alignment: Alignment, finding: Finding, depth: int) -> Place | None:
    """Return the call that gives another value to a function that is right elsewhere.

    A function that holds the value that it should take is not to blame where it uses each of its
    arguments once. None where that is not known.
    """
    number = differing_call(alignment, finding.operation)
    if number is None or number <= depth:
        return None
    able = knowing(alignment, finding.operation, _missing(alignment, finding))
    holders = [one for one, _ in able if one < number]
    places = finding.operation.places
    if all(takes_each_once(places[one]) for one in holders):
        return places[number]
    return None


def _common(alignment: Alignment, finding: Finding, wrong: FormulaStep) -> Place | None:
    """Return the line of the function that made what `wrong` is made from, and calls for it."""
    operation, given = finding.operation, finding.argument
    needed = alignment.neighbours(wrong)
    if given is not None and given.user is wrong:  # it was made from another value
        needed = {given.taken.number}
    made = [(one, one.made.places) for one in operation.inputs if one.made and one.made.places]
    used = [
        places
        for one, places in made
        if any(piece.step.number in needed for piece in alignment.known.get(one.number, ()))
    ]
    makers = [one for way in used or [places for _, places in made] for one in way]
    functions = {(one.file, one.function) for one in makers}
    for place in operation.places[given.depth if given else 0 :]:
        if (place.file, place.function) in functions:
            return place
    return operation.places[1] if len(operation.places) > 1 else None


def _is_of_others(alignment: Alignment, missing: set[int], wrong: FormulaStep) -> bool:
    """Say whether all that is `missing`, which nothing computes, is of other parts than `wrong`."""
    steps = alignment.case.formula.steps
    return all(one.part != wrong.part for one in steps if one.number in missing)


def _missing(alignment: Alignment, finding: Finding) -> set[int]:
    """Return the steps that the right value is made from, and the wrong one is not."""
    if finding.argument is not None:
        return {finding.argument.needed.number}
    steps = {one.number: one for one in alignment.case.formula.steps}
    needed = {
        number
        for number in alignment.neighbours(finding.step)
        if steps[number].name not in alignment.case.formula.parameters
    }
    return needed - alignment.given(finding.operation.outputs[0])
