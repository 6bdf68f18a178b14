"""Layouts of one array: its axes in another order, and neighbours of them merged."""

from collections.abc import Iterator
from functools import lru_cache
from itertools import permutations

import numpy as np

from attentest_spec.setting import Array

Order = tuple[int, ...]

_MOST_AXES = 5


@lru_cache(maxsize=4096)
def orders(shape: tuple[int, ...], axes: str, wanted: tuple[int, ...]) -> tuple[Order, ...]:
    """Return the orders of the axes in which an array of `shape` can be seen as `wanted`.

    Neighbours may be merged and a merged axis that `axes` calls "H" and "E" has the heads first:
    side by side, and not interleaved. Axes of length 1 count for nothing.
    """
    if np.prod(shape, dtype=int) != np.prod(wanted, dtype=int):
        return ()
    wide = [number for number, length in enumerate(shape) if length > 1]
    if len(wide) > _MOST_AXES:
        return ()
    borders = _borders(tuple(one for one in wanted if one > 1))
    narrow = tuple(number for number, length in enumerate(shape) if length == 1)
    return tuple(
        order + narrow for order in permutations(wide) if _fits(order, shape, axes, borders)
    )


def _borders(lengths: tuple[int, ...]) -> set[int]:
    return {int(one) for one in np.cumprod(lengths, dtype=int)}


def _fits(order: Order, shape: tuple[int, ...], axes: str, borders: set[int]) -> bool:
    """Say whether all `borders` lie between axes, and no head is interleaved with another."""
    own = [int(one) for one in np.cumprod([shape[number] for number in order], dtype=int)]
    if not borders <= set(own):
        return False
    letters = [axes[number] for number in order]
    if "H" not in letters or "E" not in letters:
        return True
    first, second = letters.index("H"), letters.index("E")
    low, high = sorted((first, second))
    together = not any(border in borders for border in own[low:high])
    return not together or second == first + 1


def arranged(value: Array, order: Order, wanted: tuple[int, ...]) -> Array:
    """Return `value` with its axes in `order`, reshaped to `wanted`."""
    return value.transpose(order).reshape(wanted)


def layouts(value: Array, axes: str, wanted: tuple[int, ...]) -> Iterator[Array]:
    """Yield every layout of `value` that has the shape `wanted`."""
    for order in orders(value.shape, axes, wanted):
        yield arranged(value, order, wanted)


def restored(array: Array, order: Order, shape: tuple[int, ...]) -> Array:
    """Return `array`, which lies in `order`, as the axes of `shape` lie: undo :func:`arranged`."""
    there = tuple(shape[number] for number in order)
    return array.reshape(there).transpose(tuple(np.argsort(order)))
