"""Unusual batches: by gathering, by sorting and back, and in NumPy."""

from collections.abc import Mapping
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
import torch
from torch import Tensor

from attentest.faults.unusual.member import NO_DROPOUT, member
from attentest_spec import Sizes
from attentest_spec.torch import Recipe, TorchBackend


class Gathering:
    """Shifts by indices, masks by subtraction, and counts from the sums of rows."""

    def __init__(self, sizes: Sizes) -> None:
        self.pads = sizes.source_pad, sizes.target_pad

    def __call__(self, source: Tensor, target: Tensor) -> tuple[Tensor, ...]:
        """Return what the contract asks for."""
        steps = torch.arange(target.shape[1] - 1)
        read, wanted = target.index_select(1, steps), target.index_select(1, steps + 1)
        hidden = (read - self.pads[1]).abs().clamp(max=1).bool()
        later = steps[None, :] > steps[:, None]
        kept = hidden[:, None, None, :].logical_and(later.logical_not())
        real = (source - self.pads[0]).abs().clamp(max=1).bool().view(len(source), 1, 1, -1)
        number = (wanted - self.pads[1]).abs().clamp(max=1).sum(dim=1).sum()
        return read, wanted, real, kept, number


class SortedAndBack:
    """Pads sequences in the order of their lengths, and puts them back; an end, on the left."""

    def __init__(self, sizes: Sizes) -> None:
        self.sizes = sizes

    def __call__(self, tokens: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """Return the padded tokens and where they are."""
        bounds = list(accumulate(lengths.tolist(), initial=0))
        longest = int(lengths.max()) + 1
        order = sorted(range(len(lengths)), key=lambda one: int(lengths[one]))
        rows, kept = {}, {}
        for place, (first, last) in enumerate(pairwise(bounds)):
            row = [*tokens[first:last].tolist(), self.sizes.end]
            empty = longest - len(row)
            rows[place] = [self.sizes.target_pad] * empty + row
            kept[place] = [False] * empty + [True] * len(row)
        back = [order[order.index(place)] for place in range(len(order))]
        return torch.tensor([rows[one] for one in back]), torch.tensor([kept[one] for one in back])


def packed(built: Any, tokens: Tensor, lengths: Tensor) -> tuple[Tensor, ...]:
    """Pack with NumPy: a block for each sequence, and positions by a sum that restarts."""
    count = lengths.numpy() - 1
    starts = np.repeat(np.cumsum(lengths.numpy()) - lengths.numpy(), count)
    position = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)
    words = tokens.numpy()
    blocks = [np.tri(one, dtype=bool) for one in count]
    mask = np.zeros((len(position), len(position)), dtype=bool)
    first = 0
    for block in blocks:
        mask[first : first + len(block), first : first + len(block)] = block
        first += len(block)
    found = (words[starts + position], words[starts + position + 1], position)
    read, wanted, places = (torch.from_numpy(one.astype(np.int64))[None] for one in found)
    return read, wanted, places, torch.from_numpy(mask)[None, None]


def _member(name: str, title: str, recipes: Mapping[str, Recipe], **choices: str) -> TorchBackend:
    return member(name, title, recipes, choices, NO_DROPOUT)


MEMBERS = (
    _member("gathering", "a batch that is shifted by indices", {"batch": Recipe(Gathering)}),
    _member(
        "sorted-and-back",
        "sequences padded in the order of their lengths, on the left, with an end alone",
        {"padded_batch": Recipe(SortedAndBack)},
        padding_side="left",
        sequence_marks="end",
    ),
    _member(
        "packed-blocks",
        "sequences packed by NumPy, with one block of the mask after the other",
        {"packed_batch": Recipe(lambda sizes: None, packed)},
    ),
)
