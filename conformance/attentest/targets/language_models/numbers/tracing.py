"""Traces of a call: every number that it computes, to look up those of a formula among them."""

import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from types import FrameType
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves

from attentest.analysis.lines.recording import Place, is_users
from attentest.analysis.lines.torch_recording import place_of
from attentest.targets.single import widened
from attentest_spec.setting import Floats, Mask
from attentest_spec.torch.flops import OperationMode

NEAR = 1e-9
"""Numbers are equal where they differ by less than this part of the largest of them."""

_SUMS_APART = 100.0
"""Sums of equal numbers may differ by so much more, as these may be computed in another way."""


@dataclass(eq=False)
class Result:
    """The numbers of one tensor that an operation returns, sorted.

    `places` are the user's lines that lead to the operation, the innermost first, and `inputs` the
    results that it takes. `known` are numbers that a formula gives, too, or those of an operation
    that returns some beside them; `first` are those that no earlier operation gives. Numbers that
    are `held` were there before the call, as a buffer is.
    """

    values: Floats
    places: tuple[Place, ...]
    inputs: tuple["Result", ...]
    operation: int
    known: bool = False
    first: bool = False
    held: bool = False

    @property
    def is_step(self) -> bool:
        """Whether it may be a step of a formula: masks and other constants have few numbers."""
        new = bool(self.places) and not (self.known or self.held)
        return new and len(np.unique(self.values)) > _FEW and not self.is_part

    @property
    def is_part(self) -> bool:
        """Whether it holds some numbers of a known result, and no others."""
        return any(
            one.values.size > self.values.size
            and (one.known or one.is_part)
            and bool(np.isin(self.values, one.values).all())
            for one in self.inputs
        )


_FEW = 3
"""The most different numbers that a mask has."""


class Trace(OperationMode):
    """The results of all operations of a call, without their shapes and orders.

    A formula is looked up by its numbers: sorted, so that any layout of theirs is found.
    """

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._results: list[Result] = []
        self._found: dict[int, list[Result]] = defaultdict(list)
        self._sums: dict[int, Floats] = {}
        self._made: dict[int, tuple[Tensor, Result]] = {}  # the tensor lives: no other has its id
        self._masks: list[tuple[Mask, Place | None]] = []
        self._count = 0
        self._starts: list[int] = []

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Any = None
    ) -> Any:
        """Call `func`, and keep the numbers of its result."""
        given = tree_leaves((args, kwargs))
        inputs = tuple(self._made[id(one)][1] for one in given if id(one) in self._made)
        result = func(*args, **(kwargs or {}))
        self._count += 1
        places = _lines()
        self._masks += [(mask, places[0]) for mask in _masks(result) if places]
        for one in tree_leaves(result):
            if isinstance(one, Tensor) and one.is_floating_point() and one.numel() > 1:
                values = one.detach().double().reshape(-1).numpy()
                held = not inputs and _is_one_of(one, given)
                made = Result(np.sort(values), places, inputs, self._count, held=held)
                self._results.append(made)
                self._found[len(values)].append(made)
                self._made[id(one)] = one, made
        return result

    def begin_call(self, *_: object) -> None:
        """Note that the model is called: what comes next belongs to one more call of it."""
        self._starts.append(len(self._results))

    def join_calls(self, *, beside: bool = False) -> None:
        """Take what several calls of the model compute at one place of their code as one result.

        A text that is given token by token has the numbers of a whole one then. What each call
        computes is kept where the joined results are `beside` it.
        """
        if len(self._starts) < 2:
            return
        ends = [*self._starts[1:], len(self._results)]
        calls = [
            _by_place(self._results[start:end])
            for start, end in zip(self._starts, ends, strict=True)
        ]
        joined: dict[int, Result] = {}
        for key, last in calls[-1].items():
            several = [one[key] for one in calls if key in one]
            inputs = tuple(joined.get(id(one), one) for one in last.inputs)
            values = np.sort(np.concatenate([one.values for one in several]))
            joined[id(last)] = replace(last, values=values, inputs=inputs)
        self._results = [*(self._results if beside else ()), *joined.values()]
        self._found.clear()
        for one in self._results:
            self._found[len(one.values)].append(one)

    def holds(self, values: Floats, *, known: bool = True) -> bool:
        """Say whether a result has these numbers, in whatever order.

        They are the formula's, unless they are not `known` as that.
        """
        size = values.size
        if size not in self._found:
            return False
        with np.errstate(over="ignore", invalid="ignore"):  # fills as large as the format allows
            room = NEAR * float(np.abs(values).max())
            near = np.flatnonzero(np.abs(self._sums_of(size) - values.sum()) <= room * size)
        if not len(near):  # most formulas: nothing has to be sorted
            return False
        own = np.sort(values, axis=None)
        equal = [one for one in (self._found[size][n] for n in near) if _near(one, own, room)]
        for number, one in enumerate(equal if known else ()):
            one.known, one.first = True, number == 0
        return bool(equal)

    def may_hold(self, size: int, sums: Floats, largest: Floats) -> Mask:
        """Say for arrays of `size` numbers whether a result may have theirs.

        Their `sums` decide, and bounds of the `largest` of their numbers, of any one shape.
        """
        if size not in self._found:
            return np.zeros(sums.shape, bool)
        with np.errstate(over="ignore", invalid="ignore"):
            room = _SUMS_APART * NEAR * size * largest
            apart = np.abs(self._sums_of(size) - sums[..., None])
            return np.asarray((apart <= room[..., None]).any(axis=-1))

    def _sums_of(self, size: int) -> Floats:
        """Return the sums of the results of `size` numbers."""
        if size not in self._sums:
            with np.errstate(over="ignore", invalid="ignore"):
                self._sums[size] = np.array([one.values.sum() for one in self._found[size]])
        return self._sums[size]

    def place(self, values: Floats) -> Place | None:
        """Return the innermost line that first computes these numbers, None for none."""
        return next(iter(self._lines_to(values)), None)

    def place_of_mask(self, seen: Mask) -> Place | None:
        """Return the line that first makes a mask of order under which `seen` (T, T) is seen."""
        return next((place for one, place in self._masks if np.array_equal(one, seen)), None)

    def place_beside(self, values: Floats, others: Floats) -> Place | None:
        """Return the line for these numbers in the function that calls what has the others, too.

        None where nothing has one of them.
        """
        found = None
        both = (self._lines_to(one)[::-1] for one in (values, others))
        for own, other in zip(*both, strict=False):  # the outermost first
            if (own.file, own.function) != (other.file, other.function):
                break
            found = own
            if own.line != other.line:
                break
        return found

    def _lines_to(self, values: Floats) -> tuple[Place, ...]:
        """Return the lines that lead to the first result with these numbers, () for none."""
        own = np.sort(values, axis=None)
        room = NEAR * float(np.abs(values).max())
        found = self._found.get(values.size, ())
        return next((one.places for one in found if one.places and _near(one, own, room)), ())

    def departure(self, *, before: bool) -> Place | None:
        """Return the line of the first numbers that are not the formula's.

        With `before`, something is missing before that line: it is named in the function that also
        has what is known. None where nothing is known.
        """
        firsts = [number for number, one in enumerate(self._results) if one.first]
        if not firsts:
            return None
        if before:
            return self._behind(self._results[firsts[-1]], self._results[firsts[-1] + 1 :])
        own = self._first_unknown()
        return self._earliest(own).places[0] if own else None

    def _behind(self, last: Result, later: Sequence[Result]) -> Place | None:
        """Return the line of the first unknown step after the `last` known one, in its function."""
        own = next((one for one in later if one.is_step and not self._is_whole(one)), None)
        if own is None:
            return None
        home = {(one.file, one.function): one for one in last.places}
        behind = next((one for one in own.places if (one.file, one.function) in home), None)
        known = behind and home[behind.file, behind.function]
        # A line above that of what is known belongs to the next call of the function.
        return known if behind and known and behind.line < known.line else behind

    def _is_whole(self, one: Result) -> bool:
        """Say whether another result of the same operation is known."""
        return any(other.operation == one.operation for other in self._results if other.known)

    def _first_unknown(self) -> Result | None:
        """Return the first step that is made of what is known, and of which nothing known is made.

        It leads to what the call computes last: what is returned besides says nothing.
        """
        based = _behind([one for one in self._results if one.known], self._results)
        used = self._used
        leading = _before(self._results[-1:], self._results)
        fitting = (
            one
            for one in self._results
            if id(one) in based and id(one) in leading and id(one) not in used
        )
        return next((one for one in fitting if one.is_step and not self._is_whole(one)), None)

    @property
    def _used(self) -> set[int]:
        """The results of which known ones are made."""
        return _before([one for one in self._results if one.known], self._results)

    def _earliest(self, own: Result) -> Result:
        """Return the first of the unknown results that `own` is made of.

        It is one of those that are computed later than all that is known of them: what a model
        computes before, as its tables of positions, shows nowhere whether it is right.
        """
        order = {id(one): number for number, one in enumerate(self._results)}
        mine = _before([own], self._results)
        start = max(order[id(one)] for one in self._results if one.known and id(one) in mine)
        used, found = self._used, own
        while behind := [
            one
            for one in map(_original, found.inputs)
            if one.is_step and order[id(one)] > start and id(one) not in used
        ]:
            found = behind[0]
        return found


def _by_place(results: Sequence[Result]) -> dict[tuple[object, ...], Result]:
    """Return the results of one call by their lines, and their number among those of these."""
    found: dict[tuple[object, ...], Result] = {}
    counts: dict[tuple[Place, ...], int] = defaultdict(int)
    for one in results:
        found[*one.places, counts[one.places]] = one
        counts[one.places] += 1
    return found


def _is_one_of(result: Tensor, given: Sequence[Any]) -> bool:
    """Say whether an operation returns a view or a copy of a tensor that it was given."""
    tensors = [one for one in given if isinstance(one, Tensor)]
    storage = result.untyped_storage().data_ptr()
    return any(
        one.untyped_storage().data_ptr() == storage
        or (one.shape == result.shape and torch.equal(one.to(result.dtype), result))
        for one in tensors
    )


def _behind(firsts: Sequence[Result], every: Sequence[Result]) -> set[int]:
    """Return the results that are made of one of the `firsts`."""
    found = {id(one) for one in firsts}
    for one in every:
        if any(id(given) in found for given in one.inputs):
            found.add(id(one))
    return found


def _before(lasts: Sequence[Result], every: Sequence[Result]) -> set[int]:
    """Return the results of which the `lasts` are made, and these."""
    found = {id(one) for one in lasts}
    for one in reversed(every):
        if id(one) in found:
            found |= {id(given) for given in one.inputs}
    return found


def _original(one: Result) -> Result:
    """Return the result whose numbers `one` has, or some of them, in another layout."""
    for given in one.inputs:
        if given.values.size >= one.values.size / 2 and np.isin(one.values, given.values).all():
            return _original(given)
    return one


def _near(one: Result, values: Floats, room: float) -> bool:
    return bool(np.abs(one.values - values).max() <= room)


def _masks(result: Any) -> Iterator[Mask]:
    """Yield the square results of two values alone, True where these are that of the first token.

    A mask of order has them: the first token sees itself.
    """
    for one in tree_leaves(result):
        if not isinstance(one, Tensor) or one.dim() < 2 or one.shape[-1] != one.shape[-2]:
            continue
        if one.shape[-1] > 1 and one.numel() == one.shape[-1] ** 2 and not one.is_complex():
            values = one.detach().reshape(one.shape[-2:]).double().numpy()
            if len(np.unique(values)) == 2:
                yield np.asarray(values == values[0, 0])


def _lines() -> tuple[Place, ...]:
    """Return the lines of the user's code that are running, the innermost first."""
    found = []
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        if is_users(frame.f_code.co_filename):
            found.append(place_of(frame))
        frame = frame.f_back
    return tuple(found)


def traced(
    call: Callable[[], Any], model: nn.Module | None = None, *, beside: bool = False
) -> tuple[Trace, Any]:
    """Return the trace of `call`, in double precision throughout, and its result.

    Several calls of the `model` in it are those of the tokens of one text; where they are those
    of its beginnings, what they compute is kept `beside` that.
    """
    with widened(), torch.enable_grad(), Trace() as trace:  # gradients keep torch from fused layers
        hook = model.register_forward_pre_hook(trace.begin_call) if model else None
        result = call()
    if hook is not None:
        hook.remove()
    trace.join_calls(beside=beside)
    return trace, result
