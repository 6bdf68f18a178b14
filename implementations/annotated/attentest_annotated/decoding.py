"""The tutorial's greedy decoding: the model reads its own words."""

from __future__ import annotations

import torch
from torch import Tensor

from .model import EncoderDecoder, check_sizes, subsequent_mask


def greedy_decode(
    model: EncoderDecoder, src: Tensor, src_mask: Tensor, max_len: int, start_symbol: int
) -> Tensor:
    """Return the likeliest next words (B, max_len), one after the other, behind `start_symbol`.

    The source (B, S) with its mask (B, 1, S) is encoded once. Nothing stops at an end of sentence:
    the copy task has none, as all of its sentences are equally long.
    """
    check_sizes(max_len=max_len)
    memory = model.encode(src, src_mask)
    ys = torch.full((src.size(0), 1), start_symbol, dtype=src.dtype, device=src.device)
    for _ in range(max_len - 1):
        out = model.decode(memory, src_mask, ys, subsequent_mask(ys.size(1), ys.device))
        next_word = model.generator(out[:, -1]).argmax(dim=1)
        ys = torch.cat([ys, next_word.unsqueeze(1)], dim=1)
    return ys
