"""Whether a line is the earliest that explains a wrong answer.

Whatever is wrong before an operation, the reference's value in its place hides it. A line is
proved only where all that it is made from is right, and could not have been meant otherwise: in
another order of the axes, with the opposite meaning of a mask, or in the place of one another.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import combinations, permutations, takewhile

import numpy as np

from attentest.analysis.lines.alignment import Alignment
from attentest.analysis.lines.explain import UNEXPLAINED, Explanation
from attentest.analysis.lines.formula import Step
from attentest.analysis.lines.matching import as_mask
from attentest.analysis.lines.recording import Operation, Place, Value
from attentest.analysis.lines.search import Finding
from attentest_spec.setting import Array

_MOST = 24
"""The number of other values of the earlier lines that are tried."""

_FAR = 4
"""The number of operations behind a line among which one that writes is looked for."""

_ARRANGING = {
    *("einsum", "transpose", "permute", "movedim", "swapaxes", "swapdims", "mT", "T", "t"),
    *("stack", "cat", "concat", "view", "reshape", "flatten", "unflatten"),
}
"""The functions whose caller chooses the order of the axes of the result."""

_SPREADING = {"broadcast_in_dim", "convert_element_type", "expand", "expand_as", "unsqueeze"}
"""The functions whose result is their input, seen as another shape or type."""


def is_earliest(alignment: Alignment, finding: Finding) -> bool:
    """Say whether no line before that of `finding` explains the wrong answer, too."""
    argument = finding.argument
    if finding.open or (argument is not None and argument.bound):
        return False
    border = _border(alignment, finding)
    if not all(alignment.is_sure(one) for one in border) or not _are_all_given(alignment, finding):
        return False
    case = alignment.case
    others = [*_taken(border, finding), *_meant_otherwise(border)][:_MOST]
    return not any(case.is_right(case.call(puts, alignment.own)) for puts in others)


def _are_all_given(alignment: Alignment, finding: Finding) -> bool:
    """Say whether each run of a line is given what is right, once those before it are right.

    The last norm of a stack hides whatever is wrong before it.
    """
    if len(finding.puts) < 2:
        return True
    case = alignment.case
    again = case.recording(puts=finding.puts, own=alignment.own)
    case.run(again)
    runs = [one for one in again.operations if one.number in finding.puts and one.places]
    return all(_is_given(alignment, value) for one in runs for value in _outside(alignment, one))


def _is_given(alignment: Alignment, value: Value) -> bool:
    """Say whether a value of another recording is a step, or nothing that could be wrong."""
    array = value.array
    if value.made is None or array.dtype.kind != "f" or array.size < 2:
        return True
    return bool((array == array.flat[0]).all()) or bool(alignment.matcher.pieces(array))


def _outside(alignment: Alignment, operation: Operation) -> Iterator[Value]:
    """Yield what an operation takes from other lines than its own."""
    own, todo, seen = operation.places[0][:2], [*operation.inputs], set[int]()
    while todo:
        one = todo.pop()
        if one.number in seen:
            continue
        seen.add(one.number)
        if one.made is None or not one.made.places or one.made.places[0][:2] != own:
            yield one
        elif not alignment.matcher.pieces(one.array):
            todo.extend(one.made.inputs)


def written_before(alignment: Alignment, finding: Finding) -> Place | None:
    """Return the line that writes into the one value of a result that no formula explains.

    What is written in parts, as the sum over experts is, is no step until it is complete. None
    where there are several such values, nothing is written into it, or what is written is right.
    """
    one = finding.operation
    for _ in range(_FAR):
        made = [value.made for value in one.inputs if not alignment.is_clean(value)]
        if len(made) != 1 or made[0] is None:
            return None
        one = made[0]
        if one.in_place:
            return None if _writes_right(alignment, one, finding.step) else one.place
    return None


def _writes_right(alignment: Alignment, operation: Operation, step: Step) -> bool:
    """Say whether the entries that `operation` writes are those of the whole `step`."""
    before = [one.array for one in operation.inputs]
    after, wanted = operation.outputs[0].array, np.asarray(step.value)
    if not before or not before[0].shape == after.shape == wanted.shape:
        return False
    written = before[0] != after
    return bool(written.any()) and alignment.matcher.close(after[written], wanted[written])


def step_made_before(alignment: Alignment, finding: Finding) -> Place | None:
    """Return the line that made what a call takes, if an optional step of another line.

    No code has to compute such a step: a table that is taken for another may be half of that, or be
    written wrongly. None where the function of the line makes it itself, but for a mean of squares.
    """
    argument, last = finding.argument, finding.operation.places[0]
    if argument is None or not argument.taken.optional:
        return None
    todo, made = list(finding.operation.inputs), None
    while todo:
        one = todo.pop()
        if one.made is None or not _is(alignment, one, argument.taken):
            continue
        made, todo = one.made.place or made, list(one.made.inputs)
    if made is None or (made.file, made.line) == (last.file, last.line):
        return None
    other = argument.taken.name.endswith(_OTHER_STATISTIC)
    return made if other or made.function != last.function else None


_OTHER_STATISTIC = "mean of squares"
"""The end of the name of a step that a line computes where the variance belongs."""


def _is(alignment: Alignment, value: Value, step: Step) -> bool:
    """Say whether a value is a step, or a table with more or fewer rows of it."""
    name = _SIZED.sub("", step.name)
    return any(_SIZED.sub("", p.step.name) == name for p in alignment.known.get(value.number, ()))


_SIZED = re.compile(r" \(\d+\)$")
"""The number of rows behind the name of a table."""


def made_before(
    alignment: Alignment, finding: Finding, said: Explanation
) -> tuple[Place, Explanation] | None:
    """Return the line that makes what a call takes wrongly, and the words on it; None for none.

    That is a causal mask of a constructor, or the numbers of the rows of a table of positions.
    """
    if said.step.name == "position rows":
        place = _index_made_before(alignment, finding)
        return place and (place, replace(said, expected=POSITIONS, computed=UNEXPLAINED))
    if said.exact and said.step.name == "causal mask":
        place = _mask_made_before(alignment, finding)
        return place and (place, said)
    return None


POSITIONS = "the numbers of the positions: 0, 1, 2, .."


def _index_made_before(alignment: Alignment, finding: Finding) -> Place | None:
    """Return the line that makes the numbers of the rows which a table of positions is asked for.

    None where the line that asks makes them, or where the right ones do not cure the answer.
    """
    case = alignment.case
    for value in _border(alignment, finding):
        array, made = value.array, value.made
        if made is None or array.dtype.kind != "i" or array.ndim not in (1, 2):
            continue
        right = np.broadcast_to(np.arange(array.shape[-1], dtype=array.dtype), array.shape)
        if np.array_equal(array, right):
            continue
        if case.is_right(case.call({made.number: right.copy()}, alignment.own)):
            earlier = [made, *takewhile(_is_of_others, _alone_before(made))]
            return next((one.place for one in reversed(earlier) if one.place), None)
    return None


def _is_of_others(operation: Operation) -> bool:
    """Say whether an operation makes numbers of rows, and others than 0, 1, 2, and so on."""
    array = operation.outputs[0].array
    counted = np.arange(array.shape[-1]) if array.ndim else array
    return array.dtype.kind == "i" and array.ndim > 0 and not (array == counted).all()


def _mask_made_before(alignment: Alignment, finding: Finding) -> Place | None:
    """Return the line of a constructor that makes the wrong causal mask of a call.

    None where the call makes it, or takes a mask that is right before the call cuts it.
    """
    before: Operation | None = None
    for one in _alone_before(finding.operation):
        if one.place is None or one.number >= alignment.case.first[0]:
            continue
        if before is not None and as_mask(one.outputs[0].array) is None:
            break
        before = one
    return None if before is None or _is_causal(before.outputs[0].array) else before.place


def _alone_before(operation: Operation) -> Iterator[Operation]:
    """Yield the operations before one, the last first, as long as each has one input alone."""
    one: Operation | None = operation
    while one is not None and len(one.inputs) == 1:
        one = one.inputs[0].made
        if one is not None:
            yield one


def _is_causal(array: Array) -> bool:
    """Say whether an array is a mask that hides later positions, written in either way."""
    two = as_mask(array)
    if two is None:
        return False
    square = two.reshape(two.shape[-2:]) if two.size == np.prod(two.shape[-2:]) else two
    right = np.tril(np.ones(square.shape, dtype=bool))
    return any(np.array_equal(one, right) for one in (square, ~square))


def _border(alignment: Alignment, finding: Finding) -> list[Value]:
    """Return the values of other lines that the result is made from."""
    own = finding.operation.places[0][:2]
    if finding.unchanged is not None and finding.operation.number not in finding.puts:
        return []  # the value before is replaced, and that is right
    found, todo, seen = [], [*finding.operation.inputs], set()
    while todo:
        value = todo.pop()
        if value.number in seen:
            continue
        seen.add(value.number)
        made = value.made
        if made is not None and made.places and made.places[0][:2] == own:
            known = alignment.known.get(value.number) and as_mask(value.array) is None
            if not known or made.name in _SPREADING:  # a mask is known with either meaning
                todo.extend(made.inputs)
        elif made is not None:
            found.append(value)
    return found


def _taken(border: list[Value], finding: Finding) -> Iterator[Mapping[int, Array]]:
    """Yield the value that a call needs, in the place of the operation that made what it takes."""
    if finding.argument is not None:
        swap = finding.argument.swap
        for value in border:
            if value.made is not None and np.array_equal(value.array, swap.taken):
                yield {value.made.number: swap.given}


def _is_even(array: Array) -> bool:
    """Say whether an array may be a mask that is the same everywhere: all 0, or all 1."""
    return bool(array.size and (array == array.flat[0]).all() and array.flat[0] in (0, 1))


def _meant_otherwise(border: list[Value]) -> Iterator[Mapping[int, Array]]:
    """Yield other values, by the number of the operation, of values that lines before made."""
    made, arranged = {}, set()
    for one in border:
        if one.made is not None and one.made.places and len(one.made.outputs) == 1:
            made[one.made.number] = one.array
            if one.made.name in _ARRANGING and 1 < one.array.ndim < 5:
                arranged.add(one.made.number)
    for (first, array), (second, other) in combinations(made.items(), 2):
        if array.shape == other.shape and not np.array_equal(array, other):
            yield {first: other, second: array}
    for number, array in made.items():
        two = as_mask(array)
        if two is not None:
            yield {number: np.where(two, array.min(), array.max())}
        elif _is_even(array):
            yield {number: np.logical_not(array).astype(array.dtype)}
        for order in permutations(range(array.ndim)) if number in arranged else ():
            if order != tuple(range(array.ndim)):
                yield {number: array.transpose(order)}
