"""Batches for `torch.nn.Transformer`; its loss is the library's.

Shapes: B batch, S source length, T target length, L padded length. Masks are true where they HIDE.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from .model import hide_future, hide_padding


def collate(sequences: Sequence[Tensor], bos: int, eos: int, pad: int) -> tuple[Tensor, Tensor]:
    """Return token ids (B, L) with their ends, padded on the right, and the padding mask (B, L)."""
    ends = torch.tensor([bos]), torch.tensor([eos])
    rows = [torch.cat((ends[0], row, ends[1])) for row in sequences]
    lengths = torch.tensor([len(row) for row in rows])
    padded = pad_sequence(rows, batch_first=True, padding_value=pad)
    return padded, torch.arange(padded.size(1)) >= lengths[:, None]


def split_batch(
    src: Tensor, tgt: Tensor, src_pad: int, tgt_pad: int
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return decoder input and labels (B, T), and what both sides hide: (B, S) and (B, T, T)."""
    tgt_in, tgt_out = tgt[:, :-1], tgt[:, 1:]
    hidden = hide_padding(tgt_in, tgt_pad)[:, None] | hide_future(tgt_in.size(1), tgt.device)
    return tgt_in, tgt_out, hide_padding(src, src_pad), hidden
