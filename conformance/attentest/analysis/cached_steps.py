"""The line of a wrong step with a cache: the same tokens in one call are right, and compared.

The operations of the step are matched with those of the call of all tokens: their values are its
last rows, or its first ones, of what was kept. From the scores back, the first operation that is
made of right values alone and is wrong is the line.
"""

import linecache
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from attentest.analysis.lines.explain import UNEXPLAINED
from attentest.analysis.lines.inputs import FRESH, USUAL, Inputs, Lengths, sizes_within
from attentest.analysis.lines.recorders import is_jax, recorder
from attentest.analysis.lines.recording import Operation, Recording, Value
from attentest.harness.copies import cast
from attentest.harness.errors import Absent, BackendError, Violation
from attentest.harness.subject import Subject
from attentest.harness.tolerances import as_floats
from attentest.results.verdict import Location
from attentest_spec.parameters import draw as draw_parameters
from attentest_spec.setting import Array

COMPONENTS = ("cached_decoding", "cached_language_model")

TOLERANCES = {"float64": 1e-6, "float32": 1e-4}
"""The relative difference up to which values count as equal: tables may be in float32."""

_PROGRAMS = ((4, 2), (5, 1), (3, 1, 2), (1, 1, 1, 1))
"""The numbers of tokens of each call; those before the last one are right."""

_MOVES = frozenset(
    (
        *("view", "reshape", "flatten", "unflatten", "permute", "transpose", "contiguous"),
        *("unsqueeze", "squeeze", "T", "mT"),
    )
)
"""Operations that keep all numbers, whose result is right where their input is."""


def line_of_cache(subject: Subject, component: str) -> Location | None:
    """Return the line at which a step with a cache leaves the same tokens without, if any.

    It is known for torch alone.
    """
    if is_jax(subject.backend):
        return None
    found, other = (_located(_Calls(subject, component, one)) for one in (USUAL, FRESH))
    if found is None or found == other:
        return found
    return replace(found, confirmed=False)


def _located(calls: "_Calls") -> Location | None:
    """Return the line of the first step that is wrong where all tokens in one call are right."""
    for program in _PROGRAMS:
        if not calls.is_right((sum(program),)):
            continue
        for count in range(2, len(program) + 1):
            if not calls.is_right(program[:count]):
                return _Step(calls, program[:count]).location()
    return None


class _Calls:
    """Calls of a component with the same tokens, in chunks."""

    def __init__(self, subject: Subject, component: str, lengths: Lengths) -> None:
        self.component = component
        precision = subject.precision
        if precision not in subject.limits.precisions:
            precision = subject.limits.finest
        self.subject = Subject(
            subject.backend, choices=subject.choices, limits=subject.limits, precision=precision
        )
        self.tolerance = TOLERANCES.get(precision, 1e-2)
        sizes = sizes_within(subject.limits, subject.choices, lengths, 2)
        self._sizes = sizes
        rng = np.random.default_rng(lengths.seed)
        drawn = draw_parameters(component, sizes, subject.choices, rng)
        self._parameters = {name: cast(one, precision) for name, one in drawn.items()}
        self._source = Inputs(subject, sizes, rng, "none", lengths).source()
        tokens = rng.integers(0, sizes.target_vocabulary - 1, size=(lengths.batch, 6))
        self._tokens = tokens + (tokens >= sizes.target_pad)

    def inputs(self, chunks: Sequence[int]) -> tuple[Any, ...]:
        """Return the inputs of a call in `chunks`, each after the one before."""
        tokens = self._tokens[:, : sum(chunks)]
        first = (self._source, tokens) if "decoding" in self.component else (tokens, None, None)
        rows = np.tile(np.arange(len(tokens)), (len(chunks), 1))
        return *first, np.array(chunks), np.arange(-1, len(chunks) - 1), rows

    def is_right(self, chunks: Sequence[int]) -> bool:
        """Say whether the answer is that of the reference."""
        try:
            probe = self.subject.part(self.component, self._sizes, parameters=self._parameters)
            found = as_floats(probe.output(*self.inputs(chunks)))
            wanted = as_floats(probe.expected(*self.inputs(chunks)).output)
            return _alike(found, wanted, self.tolerance)
        except (Absent, BackendError, Violation):
            return False

    def recorded(self, chunks: Sequence[int], **settings: Any) -> tuple[Recording, Any]:
        """Return the recording of a call, and its result."""
        record = recorder(self.subject.backend)
        assert record is not None
        recording = record(**settings)
        part = self.subject.part(self.component, self._sizes, parameters=self._parameters).part
        return recording, recording.run(lambda: part(*self.inputs(chunks)))


def _alike(one: Array, other: Array, tolerance: float) -> bool:
    if one.shape != other.shape:
        return False
    size = np.abs(other[np.isfinite(other)]).max(initial=1e-300) if other.size else 1.0
    return bool(np.allclose(one, other, rtol=0, atol=tolerance * size, equal_nan=True))


@dataclass(frozen=True)
class _Step:
    """The last call of a program, which is wrong, and the call of all tokens, which is right."""

    calls: _Calls
    program: Sequence[int]

    @cached_property
    def _whole(self) -> Recording:
        return self.calls.recorded((sum(self.program),))[0]

    @cached_property
    def _stepped(self) -> Recording:
        return self.calls.recorded(self.program)[0]

    @cached_property
    def _right(self) -> list[Value]:
        """The values of the call of all tokens, and those that it takes."""
        own = [one for one in self._whole.operations if one.places]
        known = {each.number: each for one in own for each in (*one.inputs, *one.outputs)}
        return [one for one in known.values() if one.array.ndim]

    @cached_property
    def _known(self) -> dict[int, bool]:
        """Whether each value of the steps is right."""
        known: dict[int, bool] = {}
        for one in self._stepped.operations:
            for value in one.inputs:
                known.setdefault(value.number, self._is_part(value))
            moved = one.name in _MOVES and all(known[each.number] for each in one.inputs)
            for value in one.outputs:
                known[value.number] = moved or self._is_part(value)
        return known

    def _is_part(self, value: Value) -> bool:
        """Say whether a value is right; few numbers are like others by chance, as positions are."""
        array, made = value.array, value.made
        known = self._right
        if made is not None and made.place is not None and array.dtype.kind in "iu":
            known = [one for one in known if one.made and one.made.place == made.place]
        return not array.ndim or any(self._fits(array, one.array) for one in known)

    def _fits(self, array: Array, whole: Array) -> bool:
        return any(
            _alike(array, as_floats(one), self.calls.tolerance) for one in self._parts(array, whole)
        )

    def _parts(self, array: Array, whole: Array) -> Iterator[Array]:
        """Yield the parts of a right value that `array` may be by its shape.

        They are all of it, its rows of the new tokens, or those of the tokens before.
        """
        if array.ndim != whole.ndim or array.dtype.kind != whole.dtype.kind:
            return
        if array.shape == whole.shape:
            yield whole
            return
        total, new = sum(self.program), self.program[-1]
        others = [
            axis
            for axis, pair in enumerate(zip(array.shape, whole.shape, strict=True))
            if len(set(pair)) > 1
        ]
        if len(others) != 1:
            return
        (axis,) = others
        length = array.shape[axis]
        if length == new:
            yield _taken(whole, axis, slice(whole.shape[axis] - new, None))
        if length == total - new:
            yield _taken(whole, axis, slice(0, length))
        for kept in (total, total - new):
            if length > whole.shape[axis] >= kept:  # a buffer, of which the rest is not used yet
                padded = array.copy()
                padded[_at(array, axis, slice(0, kept))] = _taken(whole, axis, slice(0, kept))
                yield padded

    def location(self) -> Location | None:
        """Return the line of the first wrong operation that is made of right values."""
        of_steps = [one for one in self._stepped.operations if not one.places]
        joined = [one for one in of_steps if len(one.inputs) == len(self.program)]
        if not joined or self._known[joined[-1].inputs[-1].number]:
            return None
        found = self._sources(joined[-1].inputs[-1])
        if not found:
            return None
        first = min(found, key=lambda one: one.number)
        if not first.places:
            return None
        depth = self._depth(first)
        place = first.places[depth]
        code = linecache.getline(place.file, place.line).strip()
        return Location(
            place.file,
            place.line,
            code,
            "step with a cache",
            "the value of the same tokens without one",
            UNEXPLAINED,
            confirmed=len(found) == 1 and not depth and self._is_cured(first),
        )

    def _sources(self, value: Value) -> list[Operation]:
        """Return the wrong operations that are made of right values, from `value` back."""
        found: dict[int, Operation] = {}
        left, seen = [value], set()
        while left:
            one = left.pop()
            if one.number in seen or one.made is None:
                continue
            seen.add(one.number)
            wrong = [each for each in one.made.inputs if not self._known.get(each.number, True)]
            if all(each.made is None for each in wrong):
                found[one.made.number] = one.made
            left += wrong
        return list(found.values())

    def _depth(self, operation: Operation) -> int:
        """Return how many functions are right in another call, the innermost first."""
        depths = (
            next((at for at, (here, there) in enumerate(pairs) if here == there), 0)
            for one in self._stepped.operations
            if one.place == operation.place
            and all(self._known[each.number] for each in one.outputs)
            for pairs in [zip(operation.calls, one.calls, strict=False)]
        )
        return max(depths, default=0)

    def _does_the_same(self, whole: Operation, operation: Operation) -> bool:
        """Say whether an operation of the call of all tokens is at the same line, of such inputs.

        One that takes another value is not wrong itself: what made that value was left out.
        """
        same = whole.places == operation.places and whole.name == operation.name
        pairs = zip(operation.inputs, whole.inputs, strict=False)
        return same and all(self._fits(one.array, other.array) for one, other in pairs)

    def _is_cured(self, operation: Operation) -> bool:
        """Say whether the step is right with the right value in the place of this one.

        What takes no tensor may have been given a wrong number by another line.
        """
        if not operation.inputs:
            return False
        found = operation.outputs[0].array
        alike = [one for one in self._whole.operations if self._does_the_same(one, operation)]
        values = [one.outputs[0].array for one in alike]
        for put in (part for whole in values for part in self._parts(found, whole)):
            _, answer = self.calls.recorded(self.program, puts={operation.number: put}, keep=False)
            wanted = self.calls.recorded((sum(self.program),), keep=False)[1]
            if _alike(as_floats(answer), as_floats(wanted), self.calls.tolerance):
                return True
        return False


def _at(array: Array, axis: int, rows: slice) -> tuple[slice, ...]:
    return tuple(rows if one == axis else slice(None) for one in range(array.ndim))


def _taken(array: Array, axis: int, rows: slice) -> Array:
    return array[_at(array, axis, rows)]
