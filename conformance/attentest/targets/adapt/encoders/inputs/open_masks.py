"""Masks that hide nothing, in the forms that code takes."""

from collections.abc import Iterator

import torch
from torch import Tensor


def open_masks(batch: int, length: int, keys_: int) -> Iterator[Tensor | None]:
    """Yield None and masks for `length` queries and `keys_` keys, two of each form."""
    yield None
    keys = torch.ones(batch, keys_, dtype=torch.bool)
    every = torch.ones(length, keys_, dtype=torch.bool)
    for mask in (keys, keys[:, None, None], keys[:, None] & every, every):
        yield mask
        yield mask.float()
        yield ~mask
