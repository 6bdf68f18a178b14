"""A recorded call beside the formula: what of the formula the code computes, and what it does not.

Recorded values are matched with the steps of the formula. Walking back from the wrong output
through all that matches nothing leads to the operations that may be the mistake.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from itertools import zip_longest

import numpy as np

from attentest.analysis.lines.cases import Case
from attentest.analysis.lines.formula import Step
from attentest.analysis.lines.matching import Matched, Matcher, Piece, as_mask, covered, is_mask
from attentest.analysis.lines.recording import Operation, Recording, Value, installed, package_of
from attentest.harness.subject import Answer
from attentest_spec.setting import Array

_HIDING = -1e3
"""Masked scores are at most this large."""

_NEXT = 16
"""The number of steps, from the first that is not computed, that a wrong result may stand for."""

_BEFORE = 32
"""The number of steps before the first missing one among which optional ones are looked for.

A table of positions has this many: for the rows of the call and for all, by pairs and by columns.
"""


@dataclass
class Alignment:
    """A recording beside the steps of a formula."""

    case: Case
    own: Sequence[str] = ()
    recording: Recording = field(init=False)
    needed: set[int] = field(default_factory=set)
    matcher: Matcher = field(init=False)
    known: dict[int, list[Piece]] = field(default_factory=dict)
    wrong: list[Value] = field(default_factory=list)
    covered: set[int] = field(default_factory=set)
    final: Value | None = None

    def __post_init__(self) -> None:
        """Record the call, and match its values."""
        self.recording = self.case.recording(own=self.own)
        outcome = self.case.run(self.recording)
        if not self.own and not any(one.places for one in self.called()):
            whole = self.case.recording(own=installed())
            self.case.run(whole)
            self.own = package_of(whole)
            if self.own:
                self.recording = self.case.recording(own=self.own)
                outcome = self.case.run(self.recording)
        self._allow_single_precision(self._computed())
        target = self.case.target
        assert target is not None
        if self.case.is_repeated(outcome):
            self.final = self._last(Answer.of(outcome)[target.name == "weights"])
        self._match(target)
        if self._allow_single_precision(self.wrong):  # tables that the parts were built with
            self._match(target)

    def _allow_single_precision(self, values: Iterable[Value]) -> bool:
        """Compare as single precision allows where `values` have it, and the answer stays wrong.

        Say whether that is so.
        """
        coarse = replace(self.case, coarse=True)
        single = any(_is_single(value.array) for value in values)
        found = single and coarse.tolerance > self.case.tolerance and coarse.target is not None
        if found:
            self.case = coarse
        return found

    def _computed(self) -> Iterator[Value]:
        return (value for one in self.called() for value in one.outputs)

    def called(self) -> list[Operation]:
        """Return the operations of the call itself, without those that build its parts."""
        return [one for one in self.recording.operations if one.number >= self.case.first[0]]

    def under(self, case: Case) -> "Alignment":
        """Return the same recording beside another formula for it, that of `case`."""
        other = copy(self)
        other.case, other.known, other.covered, other.wrong = case, {}, set(), []
        assert case.target is not None
        other._match(case.target)
        return other

    def _match(self, target: Step) -> None:
        formula = self.case.formula
        self.matcher = Matcher(formula.steps, self.case.tolerance)
        self.needed = self._needed(target)
        if self.final is None:
            return
        matched = Matched()
        for value in made_from(self.final):
            pieces = self.matcher.pieces(value.array)
            if any(is_mask(one.step.value) for one in pieces) and not _may_be_a_mask(value):
                pieces = [one for one in pieces if not is_mask(one.step.value)]
            self.known[value.number] = pieces
            for piece in pieces:
                matched.add(piece)
        computed = {one for one in matched.whole if one != target.number} | self._handed_in()
        self.covered = covered(
            [one for one in formula.steps if one.number in self.needed], computed
        )
        self.covered |= {one.number for one in formula.steps if one.is_leaf}
        self.wrong = sorted(self._walk_back(self.final), key=lambda value: value.number)

    def _handed_in(self) -> set[int]:
        """Return the numbers of the masks that are made for a whole model: they are its inputs.

        Code that goes without one of them lacks the scores that are masked, and not the mask.
        """
        if self.case.question.probe.component != "model":
            return set()
        outside = (one for one in self.called() if not one.places)
        masks = (value.array for one in outside for value in one.outputs if is_mask(value.array))
        return {
            piece.step.number
            for mask in masks
            for piece in self.matcher.pieces(mask)
            if is_mask(piece.step.value)
        }

    @property
    def covered_steps(self) -> set[int]:
        """The numbers of the steps of the formula that the code computes, or goes without."""
        return self.covered & self.needed

    def _needed(self, target: Step) -> set[int]:
        found: set[int] = set()
        todo = [target]
        while todo:
            step = todo.pop()
            if step.number not in found:
                found.add(step.number)
                todo.extend(step.inputs)
        return found

    def _last(self, answer: Array | None) -> Value | None:
        if answer is None:
            return None
        for operation in reversed(self.recording.operations):
            for value in operation.outputs:
                one = value.array
                if one.shape == answer.shape and np.array_equal(one, answer, equal_nan=True):
                    return _returned(value)
        return None

    def is_clean(self, value: Value) -> bool:
        """Say whether a value is the reference's, or nothing that could be wrong by itself."""
        if value.made is None or not value.made.inputs or self.known.get(value.number):
            return True  # an input or a constant, or the reference's value
        array, inputs = value.array, value.made.inputs
        if array.size < 2 and self.case.question.probe.component == "loss":  # a sum, as a rule
            return all(self.is_clean(one) for one in inputs)
        if array.size < 2 or (array == array.flat[0]).all():
            return True  # a constant
        return array.dtype.kind in "iu" and all(self.is_clean(one) for one in inputs)

    def is_sure(self, value: Value) -> bool:
        """Say whether a value is the reference's for certain, or one that cannot be wrong.

        A constant that is made from an input may be wrong: it is one by chance. So may a table of
        different numbers that is made from none, as of positions, and a mask.
        """
        made = value.made
        if made is None or self.known.get(value.number):
            return True
        if _is_constant(value):
            array = value.array
            return array.dtype.kind == "i" or array.size < 2 or bool((array == array.flat[0]).all())
        return value.array.dtype.kind in "iu" and all(self.is_sure(one) for one in made.inputs)

    def _walk_back(self, final: Value) -> list[Value]:
        """Return the values between the output and the nearest ones that are the reference's."""
        found: dict[int, Value] = {final.number: final}
        todo = [final]
        while todo:
            value = todo.pop()
            for one in value.made.inputs if value.made else ():
                if one.number not in found and not self.is_clean(one):
                    found[one.number] = one
                    todo.append(one)
        return list(found.values())

    def behind(self, value: Value) -> list[Value]:
        """Return the wrong values that `value` is made from, itself included."""
        wrong = {one.number for one in self.wrong}
        return list(made_from(value, lambda one: one.number in wrong))

    def given(self, value: Value) -> set[int]:
        """Return the numbers of the steps that `value` is made from, through wrong values alone.

        An optional step counts as what it is made from, too, through missing steps.
        """
        found: set[int] = set()
        todo = [
            (piece.step, False)
            for one in self.behind(value)
            for other in (one.made.inputs if one.made else ())
            for piece in self.known.get(other.number) or self.matcher.pieces(other.array)
        ]
        passed: set[tuple[int, bool]] = set()
        while todo:
            step, hidden = todo.pop()
            if (step.number, hidden) in passed:
                continue
            passed.add((step.number, hidden))
            found.add(step.number)
            if step.optional or (hidden and step.number not in self.covered):
                todo.extend((one, True) for one in step.inputs)
        return found

    def neighbours(self, step: Step) -> set[int]:
        """Return the numbers of the steps that `step` is made from, through missing ones alone.

        Not those of a mask that allows everything: no value of the code shows whether it is there.
        """
        found: set[int] = set()
        todo, passed = [step], {step.number}
        while todo:
            for one in todo.pop().inputs:
                if is_mask(one.value) and as_mask(one.value) is None:
                    continue
                if one.number in self.covered:
                    found.add(one.number)
                elif one.number not in passed:  # residual connections lead to a step many times
                    passed.add(one.number)
                    todo.append(one)
        return found

    def unused(self, step: Step) -> Operation | None:
        """Return the user's operation that gives the value of `step` for nothing; None for none.

        It is right, and no later line uses it, as `F.relu(x)` without an assignment. A step whose
        value is also that of one of its inputs, as under an open mask, shows nothing.
        """
        if self.final is None or step.number in self.covered or step.is_leaf:
            return None
        used = list(made_from(self.final))
        sites = {(one.made.name, one.made.place) for one in used if one.made is not None}
        called = self.called()
        for operation, after in zip_longest(called, called[1:]):
            if operation.place is None or (operation.name, operation.place) in sites:
                continue
            if after is not None and _is_one_call(operation, after):
                continue  # a library goes on with it, and returns something else
            pieces = (
                one for value in operation.outputs for one in self.matcher.pieces(value.array)
            )
            if any(one.step is step and not one.place for one in pieces):
                return operation
            if _hides_as(operation, step):
                return operation
        return None

    def missing_steps(self) -> list[Step]:
        """Return the steps that the code does not compute, and that a result may stand for."""
        open_steps = [
            one
            for one in self.case.formula.steps
            if one.number in self.needed and one.number not in self.covered
        ][:_NEXT]
        parts = {one.part for one in open_steps}
        done = {piece.step.number for pieces in self.known.values() for piece in pieces}
        first = open_steps[0].number if open_steps else 0
        optional = [
            one
            for one in self.case.formula.steps
            if one.optional
            and one.part in parts
            and one.number not in done
            and one.number >= first - _BEFORE
        ]
        return sorted([*open_steps, *optional], key=lambda one: one.number)


def _may_be_a_mask(value: Value) -> bool:
    """Say whether a value may be a mask: weights of large scores are 0 and 1 by chance."""
    if value.array.dtype.kind != "f" or value.made is None:
        return True
    return all(
        one.array.dtype.kind != "f" or np.unique(one.array).size <= 2 for one in value.made.inputs
    )


def _hides_as(operation: Operation, step: Step) -> bool:
    """Say whether an operation fills the entries that masked scores hide, scaled later or not.

    `scores.masked_fill(mask, -inf)` returns a copy.
    """
    if not step.name.endswith("masked scores") or operation.name != "masked_fill":
        return False
    hidden, wanted = (
        one <= _HIDING for one in (operation.outputs[0].array, np.asarray(step.value))
    )
    return bool(wanted.any()) and hidden.shape == wanted.shape and np.array_equal(hidden, wanted)


def _is_one_call(one: Operation, other: Operation) -> bool:
    """Say whether two operations are part of one call in the user's code, to a library."""
    return one.places == other.places and one.calls == other.calls


_FEW = 3
"""The most different numbers that a mask has, which no rounding changes."""


def _is_single(array: Array) -> bool:
    """Say whether an array holds numbers in single precision, other than a mask."""
    return array.dtype == np.float32 and np.unique(array).size > _FEW


def _returned(value: Value) -> Value:
    """Return what the user's code returned, of which an adapter may have made `value`."""
    while value.made is not None and not value.made.places:
        before = [one for one in value.made.inputs if one.array.size == value.array.size]
        if len(before) != 1 or before[0].made is None:
            break
        value = before[0]
    return value


def _is_constant(value: Value) -> bool:
    """Say whether a value is made from none of the inputs."""
    made = value.made
    if made is None:
        return False
    shape_alone = made.name.endswith("_like") or made.name.startswith("new_")
    return shape_alone or all(_is_constant(one) for one in made.inputs)


def made_from(value: Value, follow: Callable[[Value], bool] = lambda one: True) -> Iterator[Value]:
    """Yield `value` and all that it is made from, as far as `follow` says."""
    todo, seen = [value], set()
    while todo:
        one = todo.pop()
        if one.number in seen:
            continue
        seen.add(one.number)
        yield one
        inputs = one.made.inputs if one.made else ()
        todo.extend(other for other in inputs if follow(other))
