"""The search for the first operation whose result leaves the reference.

Of the operations that may be the mistake, it is the first that makes the output right once its
result is the reference's value.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Any

from attentest.analysis.lines.alignment import Alignment
from attentest.analysis.lines.formula import Step
from attentest.analysis.lines.layouts import arranged, layouts, orders, restored
from attentest.analysis.lines.recording import Operation, Place, Value
from attentest.analysis.lines.roles import assembled, assignments
from attentest_spec.setting import Array


@dataclass(frozen=True)
class Finding:
    """An operation whose result should be that of `step`.

    `puts` are the values by number of operation that make the output right, none where it is not
    `cured`. `kept` is the value that the result should have been, where the operation is one too
    many; `skipped` says that a step between the operation and what it was made from is left out.
    `actual` is what the code computed instead of `step`, as the axes of that lie.
    """

    operation: Operation
    step: Step
    puts: Mapping[int, Array] = field(default_factory=dict)
    kept: Value | None = None
    skipped: bool = False
    actual: Array | None = None

    @property
    def site(self) -> tuple[Place, str]:
        """The place in the code, and what is called there."""
        return self.operation.places[0], self.operation.name

    @property
    def cured(self) -> bool:
        """Whether the output is right with the `puts`."""
        return bool(self.puts)


def search(alignment: Alignment, end: float = inf) -> Finding | None:
    """Return the first operation that can be cured; uncured, the first one that may be wrong.

    The search ends when the CPU time of this thread has reached `end` seconds.
    """
    steps = alignment.missing_steps()
    for finding in _candidates(alignment, steps):
        if time.thread_time() > end:
            break
        case = alignment.case
        if case.is_right(case.call(finding.puts, alignment.own)):
            return finding
    return _uncured(alignment, steps)


def _candidates(alignment: Alignment, steps: Sequence[Step]) -> Iterator[Finding]:
    """Yield what may make the output right: wrong results by their order, then steps left out."""
    tried: set[Any] = set()
    for operation in _wrong_operations(alignment):
        site = (operation.places[0], operation.name)
        if site in tried:
            continue
        tried.add(site)
        runs = _runs(alignment, operation)
        given = alignment.given(operation.outputs[0])
        for step in steps:
            if alignment.neighbours(step) & given or not alignment.neighbours(step):
                yield from _replaced(alignment, operation, runs, step)
        for step in _rearranged(alignment, operation):
            yield from _replaced(alignment, operation, runs, step)
        yield from _one_too_many(alignment, operation, runs)
    for operation in _wrong_operations(alignment):
        yield from _left_out(alignment, operation, steps)


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
            yield Finding(operation, pieces[0].step, puts, kept=value)


def _left_out(
    alignment: Alignment, operation: Operation, steps: Sequence[Step]
) -> Iterator[Finding]:
    """Yield steps that are left out between `operation` and its right inputs.

    The step's value is put in the place of the input, for all that consume it.
    """
    for value in operation.inputs:
        known = {piece.step.number for piece in alignment.known.get(value.number, ())}
        if value.made is None or not known or value.made.name == "write":
            continue
        for step in steps:
            if not step.optional and any(one.number in known for one in step.inputs):
                for array in layouts(step.value, step.axes, value.array.shape):
                    puts = {value.made.number: array}
                    yield Finding(operation, step, puts, skipped=True)


def cures(finding: Finding, alignment: Alignment) -> bool:
    """Say whether the reference's value in the place of a finding makes another call right too."""
    at_site = [
        one
        for one in alignment.recording.operations
        if one.places and (one.places[0], one.name) == finding.site
    ]
    at_site = _runs(alignment, at_site[-1]) if at_site else []
    steps = [one for one in alignment.case.formula.steps if one.name == finding.step.name]
    case = alignment.case
    return any(
        case.is_right(case.call(one.puts, alignment.own))
        for one in _like(finding, alignment, at_site, steps)
    )


def _like(
    finding: Finding, alignment: Alignment, runs: Sequence[Operation], steps: Sequence[Step]
) -> Iterator[Finding]:
    """Yield the candidates of the kind of `finding` at the same place."""
    for operation in runs[:1]:
        if finding.kept is not None:
            yield from _one_too_many(alignment, operation, runs)
        elif not finding.skipped:
            for step in steps:
                yield from _replaced(alignment, operation, runs, step)
    if finding.skipped:
        for operation in runs:
            yield from _left_out(alignment, operation, steps)


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
