"""The search for the first operation whose result leaves the reference.

Of the operations that may be the mistake, it is the first that makes the output right once its
result is the reference's value.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf
from typing import Any

from attentest.analysis.lines.alignment import Alignment
from attentest.analysis.lines.arguments import Argument, arguments
from attentest.analysis.lines.exchanged import exchanges, is_transposed
from attentest.analysis.lines.explain import explain
from attentest.analysis.lines.formula import Step
from attentest.analysis.lines.inverted import inverted
from attentest.analysis.lines.layouts import arranged, layouts, orders, restored
from attentest.analysis.lines.matching import is_mask
from attentest.analysis.lines.recording import Operation, Place, Value
from attentest.analysis.lines.roles import assembled, assignments
from attentest_spec.setting import Array


@dataclass(frozen=True)
class Finding:
    """An operation whose result should be that of `step`.

    `puts` are the values by number of operation that make the output right, none where it is not
    `cured`. `kept` is the value that the result should have been, where the operation is one too
    many; `unchanged` is the value that it has instead where `step` is left out;
    `argument` is the call that is given another value than it needs.
    `actual` is what the code computed instead of `step`, as the axes of that lie; it is
    `exchanged` where queries and keys are in each other's place. One that is `open` may be the
    consequence of an earlier line that no number shows.
    """

    operation: Operation
    step: Step
    puts: Mapping[int, Array] = field(default_factory=dict)
    kept: Value | None = None
    unchanged: Step | None = None
    argument: Argument | None = None
    actual: Array | None = None
    exchanged: bool = False
    open: bool = False

    @property
    def site(self) -> tuple[Place, str]:
        """The place in the code, and what is called there."""
        return self.operation.places[0], self.operation.name

    @property
    def cured(self) -> bool:
        """Whether the output is right with the `puts`, or the argument."""
        return bool(self.puts) or self.argument is not None

    @property
    def leaves_out(self) -> bool:
        """Whether a step of the formula is left out."""
        other = self.argument
        return self.unchanged is not None or (
            other is not None and other.taken in other.needed.inputs
        )

    @property
    def is_late(self) -> bool:
        """Whether a call is given a value that lacks a step, which may be missing inside."""
        return self.argument is not None and self.leaves_out

    def cures(self, alignment: Alignment) -> bool:
        """Say whether the answer is right with the `puts`, or the argument."""
        case = alignment.case
        swap = self.argument.swap if self.argument else None
        return case.is_right(case.call(self.puts, alignment.own, swap))


def search(alignment: Alignment, end: float = inf) -> Finding | None:
    """Return the first operation that can be cured; uncured, the first one that may be wrong.

    The search ends when the CPU time of this thread has reached `end` seconds. Where a wrong value
    is made from one that is too large to be kept, an earlier one may be wrong.
    """
    if not all(one.complete for one in _wrong_operations(alignment)):
        return None
    steps = alignment.missing_steps()
    for finding in _candidates(alignment, steps):
        if time.thread_time() > end:
            break
        if finding.cures(alignment):
            found = _exchanged_before(alignment, finding)
            return _explained_before(alignment, found, steps) or found
    return _uncured(alignment, steps)


def _exchanged(alignment: Alignment) -> Iterator[Finding]:
    """Yield where queries and keys may be exchanged."""
    for one in exchanges(alignment):
        yield Finding(one.operation, one.scores, one.puts, exchanged=True, open=not one.named)


def _exchanged_before(alignment: Alignment, finding: Finding) -> Finding:
    """Return where queries and keys are exchanged, if `finding` is made from such scores.

    A mask may be put on them before: masked scores are not those of the formula in any order.
    """
    made = [one.made for one in finding.operation.inputs if one.made is not None]
    before = [*finding.operation.inputs, *(one for each in made for one in each.inputs)]
    if not any(is_transposed(alignment, one) for one in before):
        return finding
    found = next((one for one in _exchanged(alignment) if one.cures(alignment)), None)
    return found or replace(finding, open=True)


def _explained_before(
    alignment: Alignment, finding: Finding, steps: Sequence[Step]
) -> Finding | None:
    """Return the first wrong operation, where a later one is made from two wrong ones of its kind.

    Keys and values that are both repeated in a wrong order are one: none cures the answer alone.
    The first is one where a known mistake gives its very numbers.
    """
    early = _uncured(alignment, steps)
    if finding.argument or early is None or early.actual is None:
        return None
    name, last = early.operation.name, finding.operation.number
    alike = [one for one in _wrong_operations(alignment) if one.name == name and one.number < last]
    if len(alike) < 2 or early.operation is finding.operation:
        return None
    given = alignment.given(early.operation.outputs[0])
    said = explain(early.actual, early.step, alignment.covered, given, alignment.matcher)
    return early if said.exact else None


def _candidates(alignment: Alignment, steps: Sequence[Step]) -> Iterator[Finding]:
    """Yield what may make the output right, by the order of the operations."""
    tried: set[Any] = set()
    yield from _ended_too_early(alignment)
    for one in inverted(alignment):
        puts = {one.operation.number: one.value}
        yield Finding(one.operation, one.step, puts, actual=~one.step.value)
    yield from _computed_twice(alignment, steps)
    for operation in _wrong_operations(alignment):
        site = (operation.places[0], operation.name)
        if site in tried:
            continue
        tried.add(site)
        runs = _runs(alignment, operation)
        given = alignment.given(operation.outputs[0])
        near = [one for one in steps if _may_be(alignment, one, given)]
        others = list(_given_another(alignment, operation))
        yield from (one for one in others if not one.is_late)
        for step in (one for one in near if not one.optional):
            yield from _replaced(alignment, operation, runs, step)
        yield from _one_too_many(alignment, operation, runs)
        for step in _rearranged(alignment, operation):
            yield from _replaced(alignment, operation, runs, step)
        for step in near:
            yield from _reduced(operation, step)
        yield from _left_out(alignment, operation, steps)
        yield from (one for one in others if one.is_late)
        for step in (one for one in near if one.optional):
            yield from _replaced(alignment, operation, runs, step)


def _computed_twice(alignment: Alignment, steps: Sequence[Step]) -> Iterator[Finding]:
    """Yield the operations that compute a step anew, with one of the missing `steps` for it.

    So sines that are written in the place of cosines are right, and are put where others belong.
    The first of both may be the wrong one, as a query that is made with the weights of keys.
    """
    first: dict[int, Operation] = {}
    for operation in alignment.recording.operations:
        if operation.place is None or operation.name == "write" or not operation.outputs:
            continue
        for piece in alignment.known.get(operation.outputs[0].number, ()):
            shape, number = piece.step.value.shape, piece.step.number
            before = first.setdefault(number, operation)
            if before.place == operation.place or number in carried(alignment, operation):
                continue
            alike = [one for one in steps if one.value.shape == shape]
            for either in (operation, before):
                runs = _runs(alignment, either)
                for step in sorted(alike, key=lambda one: one.optional):
                    yield from _replaced(alignment, either, runs, step)


def carried(alignment: Alignment, operation: Operation) -> set[int]:
    """Return the steps that an operation is given, and may return in another order."""
    known = (alignment.known.get(one.number, ()) for one in operation.inputs)
    return {piece.step.number for pieces in known for piece in pieces}


def _may_be(alignment: Alignment, step: Step, given: set[int]) -> bool:
    neighbours = alignment.neighbours(step)
    return not neighbours or bool(neighbours & given)


def _given_another(alignment: Alignment, operation: Operation) -> Iterator[Finding]:
    """Yield the calls that are given another value of the formula than they need.

    Where an operation before them leaves it unchanged, it is that operation.
    """
    for argument in arguments(alignment, operation):
        idle = argument.idle
        if idle is not None and idle.place is not None:
            puts = {idle.number: argument.swap.given}
            yield Finding(idle, argument.needed, puts, unchanged=argument.taken)
        yield Finding(operation, argument.needed, argument=argument)


def _wrong_operations(alignment: Alignment) -> Iterator[Operation]:
    for value in alignment.wrong:
        operation = value.made
        if operation is not None and operation.name != "write" and operation.place is not None:
            yield operation


def _rearranged(alignment: Alignment, operation: Operation) -> list[Step]:
    """Return the steps whose numbers `operation` is given, and may return in a wrong order."""
    size = operation.outputs[0].array.size
    return [
        piece.step
        for value in operation.inputs
        for piece in alignment.known.get(value.number, ())
        if piece.step.value.size == size and not piece.step.is_leaf
    ]


def _replaced(
    alignment: Alignment, operation: Operation, runs: Sequence[Operation], step: Step
) -> Iterator[Finding]:
    """Yield the ways to put the reference's values in the place of the results of `runs`."""
    shapes = [one.outputs[0].array.shape for one in runs]
    for roles in assignments(alignment.case.formula, shapes, step):
        puts = {
            run.number: arranged(role.value, role.order, shape)
            for run, role, shape in zip(runs, roles, shapes, strict=True)
        }
        results = [one.outputs[0].array for one in runs]
        yield Finding(operation, step, puts, actual=assembled(step, roles, results))
        if all(is_mask(one) for one in (step.value, *results)):  # True may hide a key
            puts = {number: ~one for number, one in puts.items()}
            kept = [~one for one in results]
            yield Finding(operation, step, puts, actual=assembled(step, roles, kept))


def _reduced(operation: Operation, step: Step) -> Iterator[Finding]:
    """Yield the ways to reduce the input of `operation` along another axis, to that of `step`."""
    result = operation.outputs[0].array
    if operation.name not in _REDUCTIONS or not operation.inputs:
        return
    whole = operation.inputs[0].array.shape
    for axis, length in enumerate(whole):
        kept = (1,) if result.ndim == len(whole) else ()
        shape = whole[:axis] + kept + whole[axis + 1 :]
        if length > 1 and shape != result.shape:
            for array in layouts(step.value, step.axes, shape):
                yield Finding(operation, step, {operation.number: array})


_REDUCTIONS = {
    *("sum", "mean", "amax", "amin", "max", "var", "std", "norm", "vector_norm", "logsumexp"),
    *("median", "prod", "linalg_vector_norm", "linalg_norm"),
}
"""The functions that take an axis away, or make its length 1."""


def _ended_too_early(alignment: Alignment) -> Iterator[Finding]:
    """Yield the last operation, where it gives a step that the right output is made from."""
    target, final = alignment.case.target, alignment.final
    if target is None or final is None or final.made is None or final.made.place is None:
        return
    for piece in alignment.known.get(final.number, ()):
        if piece.step in target.inputs:
            for array in layouts(target.value, target.axes, final.array.shape):
                puts = {final.made.number: array}
                yield Finding(final.made, target, puts, unchanged=piece.step)


def _one_too_many(
    alignment: Alignment, operation: Operation, runs: Sequence[Operation]
) -> Iterator[Finding]:
    """Yield the ways to leave `operation` out: its result is one of its own inputs."""
    shape = operation.outputs[0].array.shape
    for number, value in enumerate(operation.inputs):
        pieces = alignment.known.get(value.number)
        if not pieces or value.array.shape != shape or value.array.size < 2:
            continue
        if all(len(one.inputs) > number for one in runs):
            puts = {one.number: one.inputs[number].array for one in runs}
            undone = operation.name in _SORTING  # a later line may lack, which undoes the order
            yield Finding(operation, pieces[0].step, puts, kept=value, open=undone)


_SORTING = ("sort", "argsort", "topk", "msort")
"""The functions whose second result says where the sorted numbers were."""


def _left_out(
    alignment: Alignment, operation: Operation, steps: Sequence[Step]
) -> Iterator[Finding]:
    """Yield steps that are left out between `operation` and its right inputs.

    The step's value is put in the place of the input, for all that consume it.
    """
    for value in operation.inputs:
        known = {piece.step.number: piece.step for piece in alignment.known.get(value.number, ())}
        if value.made is None or not known or value.made.name == "write":
            continue
        for step in steps:
            taken = next((known[one.number] for one in step.inputs if one.number in known), None)
            if taken is not None and not step.optional:
                for array in layouts(step.value, step.axes, value.array.shape):
                    puts = {value.made.number: array}
                    yield Finding(operation, step, puts, unchanged=taken)


def again(finding: Finding, alignment: Alignment) -> Finding | None:
    """Return the finding of the same kind, at the same place, that cures another call.

    None where none does.
    """
    at_site = [
        one
        for one in alignment.recording.operations
        if one.places and (one.places[0], one.name) == finding.site
    ]
    like = _like(finding, alignment, at_site) if at_site else ()
    return next((one for one in like if one.cures(alignment)), None)


def _like(
    finding: Finding, alignment: Alignment, at_site: Sequence[Operation]
) -> Iterator[Finding]:
    """Yield the candidates of the kind of `finding` at the same place, then other values there."""
    steps = [one for one in alignment.case.formula.steps if one.name == finding.step.name]
    for step in steps:
        yield from _reduced(at_site[-1], step)
    runs = _runs(alignment, at_site[-1])
    if finding.argument is not None:
        for operation in at_site:
            found = _given_another(alignment, operation)
            yield from (one for one in found if _same_argument(one, finding))
    elif finding.unchanged is not None:
        yield from (one for one in _ended_too_early(alignment) if one.site == finding.site)
        for operation in runs:
            yield from _left_out(alignment, operation, steps)
    elif finding.kept is not None:
        yield from _one_too_many(alignment, runs[0], runs)
    elif finding.exchanged:
        yield from (one for one in _exchanged(alignment) if one.site == finding.site)
    for step in dict.fromkeys([*steps, *alignment.missing_steps()]):
        yield from _replaced(alignment, runs[0], runs, step)


def _same_argument(one: Finding, other: Finding) -> bool:
    first, second = one.argument, other.argument
    return (
        first is not None
        and second is not None
        and (first.depth, first.needed.name) == (second.depth, second.needed.name)
    )


def _uncured(alignment: Alignment, steps: Sequence[Step]) -> Finding | None:
    """Return the first wrong operation of the user, unproved."""
    for operation in _wrong_operations(alignment):
        array = operation.outputs[0].array
        for step in steps:
            known = orders(step.value.shape, step.axes, array.shape)
            if known and not step.optional:
                actual = restored(array, known[0], step.value.shape)
                return Finding(operation, step, actual=actual)
    return None


def _runs(alignment: Alignment, operation: Operation) -> list[Operation]:
    """Return all operations of the place in the code that `operation` is one of.

    Of those in the call itself where it is one of them, otherwise of those before it.
    """
    first = alignment.case.first[0]
    return [
        one
        for one in alignment.recording.operations
        if one.places[:1] == operation.places[:1]
        and one.name == operation.name != "write"
        and (one.number < first) == (operation.number < first)
    ]
