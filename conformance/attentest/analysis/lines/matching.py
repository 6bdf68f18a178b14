"""Recognises the values of a formula among the values that code computes."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np

from attentest.analysis.lines.formula import Step
from attentest.analysis.lines.layouts import layouts
from attentest_spec.setting import Array

FAR = 1e3
"""A score that is lower than minus this, and than a tenth of the lowest, is a masked one."""


@dataclass(frozen=True)
class Piece:
    """A step, or a slice of it: one head, one sample."""

    step: Step
    value: Array
    axes: str
    place: tuple[tuple[str, int], ...] = ()


def is_mask(array: Array) -> bool:
    """Say whether `array` holds booleans."""
    return array.dtype.kind == "b"


def as_mask(array: Array) -> Array | None:
    """Return an array of two values as booleans; None where it is none, or says nothing."""
    if array.size < 2:
        return None
    if is_mask(array):
        two = array
    else:
        low, high = array.min(), array.max()
        far = low < -FAR and high == 0
        if np.isnan(low) or not (far or (low == 0 and high == 1)):
            return None
        if not np.logical_or(array == low, array == high).all():
            return None
        two = array == high
    return None if two.all() or not two.any() else two


def squeezed(mask: Array) -> Array:
    """Return `mask` without the axes along which it does not change."""
    for axis in reversed(range(mask.ndim)):
        first = mask.take([0], axis=axis)
        if (mask == first).all():
            mask = mask.take(0, axis=axis)
    return mask


def visible(array: Array) -> Array:
    """Return where scores are not masked: not minus infinity, nor far below all others."""
    low = array.min(initial=0.0)
    if np.isneginf(low):
        return ~np.isneginf(array)
    keep: Array = array > low / 10 if low < -FAR else np.ones(array.shape, dtype=bool)
    return keep


class Matcher:
    """The values of the steps of a formula, ready to be recognised."""

    def __init__(self, steps: Iterable[Step], tolerance: float) -> None:
        self.tolerance = tolerance
        self.steps = list(steps)
        self._pieces: dict[int, list[tuple[float, Piece]]] = {}
        self._masks: list[tuple[Step, Array]] = []
        for step in self.steps:
            if is_mask(step.value):
                self._masks.append((step, squeezed(step.value)))
            elif step.value.size and step.value.dtype.kind == "f":
                for piece in _pieces(step):
                    one = (_energy(piece.value), piece)
                    self._pieces.setdefault(piece.value.size, []).append(one)
            elif step.value.dtype.kind == "i" and step.value.ndim:
                self._pieces.setdefault(step.value.size, []).append(
                    (_energy(step.value), Piece(step, step.value, step.axes))
                )

    def pieces(self, array: Array) -> list[Piece]:
        """Return the steps, and slices of steps, that `array` is a layout of."""
        two = as_mask(array)
        found = [] if two is None else list(self._of_mask(two))
        if array.dtype.kind not in "fi" or not array.size:
            return found
        if array.size == 1:
            return found
        energy = _energy(array)
        near = 4 * self.tolerance * max(energy, 1e-300) * 1e1
        for other, piece in self._pieces.get(array.size, ()):
            if abs(other - energy) <= near and self.equal(array, piece):
                found.append(piece)
        return found

    def _of_mask(self, two: Array) -> Iterator[Piece]:
        core = squeezed(two)
        for step, known in self._masks:
            for one in (known, ~known):
                if np.array_equal(core, one) or _merged(core, one):
                    yield Piece(step, step.value, step.axes)
                    break

    def equal(self, array: Array, piece: Piece) -> bool:
        """Say whether `array` is a layout of `piece`, up to rounding."""
        shapes = layouts(piece.value, piece.axes, array.shape)
        return any(self.close(array, one, filled=piece.step.filled) for one in shapes)

    def close(self, array: Array, expected: Array, *, filled: bool = False) -> bool:
        """Say whether two arrays of one shape are equal up to rounding; masked scores count not."""
        if array.shape != expected.shape:
            return False
        if is_mask(array) or is_mask(expected):
            return np.array_equal(array, expected)
        if filled:
            keep = visible(expected)
            if not np.array_equal(keep, visible(array)):
                return False
            array, expected = array[keep], expected[keep]
        finite = np.isfinite(expected)
        if not np.array_equal(finite, np.isfinite(array)):
            return False
        array, expected = array[finite], expected[finite]
        size = np.abs(expected).max(initial=0.0)
        worst = np.abs(array - expected).max(initial=0.0)
        return bool(worst <= self.tolerance * max(size, 1e-300))


def _merged(core: Array, known: Array) -> bool:
    """Say whether `core` is the mask `known`, repeated for the heads and merged with samples."""
    if core.ndim != 3 or known.ndim != 3 or core.shape[1:] != known.shape[1:]:
        return False
    repeats, rest = divmod(len(core), len(known))
    if rest:
        return False
    options = (np.repeat(known, repeats, axis=0), np.tile(known, (repeats, 1, 1)))
    return any(np.array_equal(core, one) for one in options)


def _energy(array: Array) -> float:
    """Return the sum of squares of what is neither infinite nor masked: equal for all layouts."""
    with np.errstate(invalid="ignore"):  # memory that nothing was written to yet
        values = array.astype(np.float64).ravel()
    if values.size and (values.min() < -FAR or not np.isfinite(values).all()):
        values = values[visible(values) & np.isfinite(values)]
    return float(values @ values)


def _pieces(step: Step) -> Iterator[Piece]:
    """Yield the step and its slices for one head, one sample, and both."""
    yield Piece(step, step.value, step.axes)
    if step.optional and "H" not in step.axes:
        return
    for letters in ("H", "B", "BH"):
        sliced = [step.axes.find(one) for one in letters]
        if min(sliced) < 0 or any(step.value.shape[axis] < 2 for axis in sliced):
            continue
        rest = "".join(one for one in step.axes if one not in letters)
        for place in np.ndindex(*(step.value.shape[axis] for axis in sliced)):
            index: list[int | slice] = [slice(None)] * step.value.ndim
            for axis, number in zip(sliced, place, strict=True):
                index[axis] = number
            yield Piece(
                step, step.value[tuple(index)], rest, tuple(zip(letters, place, strict=True))
            )


@dataclass
class Matched:
    """The steps that code computes, by number; those it computes in pieces count when complete."""

    whole: set[int] = field(default_factory=set)
    _places: dict[tuple[int, int], set[tuple[tuple[str, int], ...]]] = field(default_factory=dict)

    def add(self, piece: Piece) -> None:
        """Take in one recognised value."""
        number, size = piece.step.number, piece.value.size
        places = self._places.setdefault((number, size), set())
        places.add(piece.place)
        if not piece.place or len(places) * size == piece.step.value.size:
            self.whole.add(number)


def covered(steps: Iterable[Step], computed: set[int]) -> set[int]:
    """Return the numbers of the steps that are computed, or that only such steps are made from."""
    found = set(computed)
    for step in reversed(list(steps)):
        if step.consumers and all(one.number in found for one in step.consumers):
            found.add(step.number)
    return found


def is_rearranged(wrong: Step, step: Step) -> bool:
    """Say whether `step` has the numbers of `wrong`, as heads have those of their projection."""
    own, others = (np.sort(one.value, axis=None) for one in (wrong, step))
    return wrong in step.inputs and np.array_equal(own, others)
