"""Calls that are given another value of the formula than the one they need.

Where a result is what the formula gives for another of its values, the call was given that one:
`attend(x, x)` where the memory belongs. The line to blame is the innermost call that becomes right
with the value it should be given.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile

import numpy as np

from attentest.analysis.lines.alignment import Alignment
from attentest.analysis.lines.formula import Step, evaluated
from attentest.analysis.lines.layouts import layouts
from attentest.analysis.lines.matching import Piece
from attentest.analysis.lines.recording import Operation, Swap, Value
from attentest_spec.setting import Array


@dataclass(frozen=True)
class Argument:
    """A call at the place number `depth` that takes the step `taken` where `needed` belongs.

    That makes the step `user` the value `computed`. `idle` is the operation that made the value
    and left it as its own input is; `bound` says that it is swapped in all that follows.
    """

    swap: Swap
    depth: int
    taken: Step
    needed: Step
    user: Step
    computed: Array
    idle: Operation | None = None
    bound: bool = False


def arguments(alignment: Alignment, operation: Operation) -> Iterator[Argument]:
    """Yield the other values that `operation`, and the calls that it is in, may need."""
    for value, taken, needed, user, computed in _exchanged(alignment, operation):
        idle = value.made if _is_idle(value) else None
        for depth, bound in _extents(operation, leaves_out=taken in needed.inputs):
            inside = _inside(alignment, operation, depth, bound=bound)
            first, last = inside[0].number, inside[-1].number
            for given in _given(alignment, inside, taken) if depth or bound else (value,):
                for array in layouts(needed.value, needed.axes, given.array.shape):
                    swap = Swap(first, last, given.array, array)
                    yield Argument(swap, depth, taken, needed, user, computed, idle, bound)


def _extents(operation: Operation, *, leaves_out: bool) -> list[tuple[int, bool]]:
    """Return the calls that the operation is in, the innermost first, then all that follow each.

    Where a step is left out, what follows in a function is before its caller, which could add the
    step for it.
    """
    depths = range(len(operation.places))
    extents = [(depth, bound) for bound in (False, True) for depth in depths]
    return sorted(extents) if leaves_out else extents


def _is_idle(value: Value) -> bool:
    """Say whether the operation that made a value left one of its inputs as it is."""
    made = value.made
    return made is not None and any(
        one.array.shape == value.array.shape and np.array_equal(one.array, value.array)
        for one in made.inputs
    )


def _exchanged(
    alignment: Alignment, operation: Operation
) -> Iterator[tuple[Value, Step, Step, Step, Array]]:
    """Yield an input of `operation`, its step, the one that belongs there, and what comes of it."""
    (result, *_) = operation.outputs
    for value in operation.inputs:
        for piece in alignment.known.get(value.number, ()):
            taken = piece.step
            if piece.place or taken.name in alignment.case.formula.parameters:
                continue
            for user, needed, other in _made_from(alignment, taken, result.array.size):
                if alignment.matcher.equal(result.array, Piece(user, other, user.axes)):
                    yield value, taken, needed, user, other


def _made_from(alignment: Alignment, taken: Step, size: int) -> Iterator[tuple[Step, Step, Array]]:
    """Yield steps with the input that belongs there, and what `taken` makes of them instead.

    A kernel may compute all steps of a norm at once.
    """
    for user, needed in _users(alignment, taken):
        other = _with(user, needed, taken.value)
        if other is not None and other.size == size:
            yield user, needed, other
    for user, needed, chain in _norms(alignment, taken):
        if user.value.size == size:
            other = evaluated(user, {needed.number: taken.value}, chain)
            if other is not None:
                yield user, needed, other


def _norms(alignment: Alignment, taken: Step) -> Iterator[tuple[Step, Step, list[Step]]]:
    """Yield the last step of each norm, the row that it should be given, and all of its steps."""
    steps = alignment.case.formula.steps
    for user in steps:
        if user.optional or not user.part.endswith("norm"):
            continue
        if any(one.part == user.part and not one.optional for one in user.consumers):
            continue
        chain = [one for one in steps if one.part == user.part and not one.is_leaf]
        needed = chain[0].inputs[0]
        if _belongs(needed, taken):
            yield user, needed, chain


def _belongs(needed: Step, taken: Step) -> bool:
    """Say whether `taken` may be what code has in the place of `needed`."""
    same = needed.value.shape == taken.value.shape and needed.value.dtype.kind == "f"
    known = (taken, *taken.inputs)
    return same and needed not in known and not np.array_equal(needed.value, taken.value)


def _users(alignment: Alignment, taken: Step) -> Iterator[tuple[Step, Step]]:
    """Yield the steps that may have been computed from `taken`, each with the right input."""
    for user in alignment.case.formula.steps:
        if user.compute is None:
            continue
        for needed in user.inputs:
            if _belongs(needed, taken):
                yield user, needed


def _with(user: Step, needed: Step, value: Array) -> Array | None:
    """Return the value of `user` with `value` in the place of `needed`."""
    assert user.compute is not None
    inputs = (value if one is needed else one.value for one in user.inputs)
    try:
        with np.errstate(all="ignore"):
            return np.asarray(user.compute(*inputs))
    except (ValueError, IndexError, TypeError):
        return None


def _inside(
    alignment: Alignment, operation: Operation, depth: int, *, bound: bool
) -> list[Operation]:
    """Return the operations of the call at `depth`; of the line from `operation` on at depth 0.

    Where it is `bound`, those of the function that calls follow, to its end.
    """
    operations = [one for one in alignment.recording.operations if one.name != "write"]
    later = (one for one in operations if one.number >= operation.number)
    inside = [one for one in operations if depth and operation.calls[depth - 1] in one.calls]
    if bound:
        first = inside[0].number if inside else operation.number
        function = operation.calls[depth]
        return [one for one in operations if one.number >= first and function in one.calls]
    place = operation.places[0], operation.calls[0]
    return inside or list(takewhile(lambda one: (*one.places[:1], *one.calls[:1]) == place, later))


def _given(alignment: Alignment, inside: Sequence[Operation], taken: Step) -> list[Value]:
    """Return the values of `taken` that come from outside of the operations `inside`."""
    own = {one.number for one in inside}
    found = {
        value.number: value
        for one in inside
        for value in one.inputs
        if value.made is None or value.made.number not in own
        if any(piece.step is taken for piece in alignment.known.get(value.number, ()))
    }
    return list(found.values())
