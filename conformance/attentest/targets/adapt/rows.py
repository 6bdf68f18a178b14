"""Results of positional encodings that hold rows of a table, which their caller adds."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from attentest.targets.adapt.layouts import NUMBERS, Layout
from attentest.targets.adapt.results import Returns, returns


def table(result: Any, output: tuple[int, ...], layout: Layout) -> Returns | None:
    """Return the place of a table of positions in `result`, without a batch; None for none."""
    if layout.fold not in ("whole", *NUMBERS):
        return None
    batch = 0 if layout.swap is None else 1
    shapes = [tuple(1 if axis == batch else size for axis, size in enumerate(output))]
    shapes += [output[1:]] * (batch == 0)
    found = next(filter(None, (returns(result, shape, ()) for shape in shapes)), None)
    return None if found is None else replace(found, added=True)


def rows_of(result: Any, output: tuple[int, ...]) -> Returns | None:
    """Return the place of a row for every position of every sample, None for none."""
    found = returns(result, output, ())
    return None if found is None else replace(found, added=True)


def ignores_numbers(rows: Callable[[Tensor], Any], shape: Sequence[int]) -> bool:
    """Say whether `rows` gives the same for all whole numbers of `shape` (B, L)."""
    like = torch.zeros(*shape, dtype=torch.int64)
    given = [*(like + one for one in range(4)), torch.arange(like.shape[1]).expand_as(like)]
    found = [rows(one) for one in given]
    return all(isinstance(one, Tensor) and torch.equal(one, found[0]) for one in found)
