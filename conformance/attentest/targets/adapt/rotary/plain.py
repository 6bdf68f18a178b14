"""Turns queries by cosines and sines that code makes, where no function of its file takes these.

Which columns are a pair is what the tables show: those whose cosines and sines are equal.
"""

from typing import Annotated

import torch
from torch import Tensor


def turn_halves(
    x: Annotated[Tensor, "B H T D"],
    cos: Annotated[Tensor, "*rows D"],
    sin: Annotated[Tensor, "*rows D"],
) -> Annotated[Tensor, "B H T D"]:
    """Return x (B, H, T, D) turned in pairs of the columns i and i + D/2.

    Tables are (T, D) or (B, T, D), with further axes of size 1. Raises ValueError where they are
    not, or where the two columns of a pair are not equal.
    """
    first, second = x.chunk(2, -1)
    other = torch.cat((-second, first), -1)
    return x * _rows(cos, x, *cos.chunk(2, -1)) + other * _rows(sin, x, *sin.chunk(2, -1))


def turn_adjacent(
    x: Annotated[Tensor, "B H T D"],
    cos: Annotated[Tensor, "*rows D"],
    sin: Annotated[Tensor, "*rows D"],
) -> Annotated[Tensor, "B H T D"]:
    """Return x (B, H, T, D) turned in pairs of the columns 2i and 2i + 1; see turn_halves."""
    other = torch.stack((-x[..., 1::2], x[..., 0::2]), -1).reshape(x.shape)
    cosines, sines = (_rows(table, x, table[..., 0::2], table[..., 1::2]) for table in (cos, sin))
    return x * cosines + other * sines


def _rows(table: Tensor, x: Tensor, first: Tensor, second: Tensor) -> Tensor:
    """Return a table as (B or 1, 1, T, D); `first` and `second` are the columns of its pairs."""
    batch, _, length, width = x.shape
    rows = [size for size in table.shape[:-1] if size > 1]
    fits = [[size for size in sizes if size > 1] for sizes in ((length,), (batch, length))]
    if not table.is_floating_point() or table.shape[-1] != width or rows not in fits:
        raise ValueError(f"a table has the shape {tuple(table.shape)}, and x {tuple(x.shape)}")
    if not (table.is_meta or torch.equal(first, second)):
        raise ValueError("the columns of this table are not equal in these pairs")
    return table.reshape(-1, 1, length, width)


PLAIN = (turn_halves, turn_adjacent)
"""The functions that turn by tables, in the order in which they are tried."""
