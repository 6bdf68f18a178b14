"""The loss and the batches of the one-layer Transformer, written out.

Shapes: B batch, T target, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from .model import causal_mask


def log_sum_exp(x: Tensor) -> Tensor:
    """Return log(sum(exp(x))) along the last axis, which stays with a length of 1."""
    top = x.detach().amax(-1, keepdim=True)
    return top + (x - top).exp().sum(-1, keepdim=True).log()


def sequence_loss(scores: Tensor, target: Tensor, pad: int) -> Tensor:
    """Return minus the log-probability of a target sequence, its mean over the batch.

    Scores (B, T, V) are logits, and targets (B, T) that are `pad` count for nothing. The tokens of
    a sequence add up: a longer one is less likely. ValueError or IndexError for what does not fit.
    """
    if scores.shape[:-1] != target.shape:
        raise ValueError(f"scores {tuple(scores.shape)} do not fit a target {tuple(target.shape)}")
    foreign = target[(target < 0) | (target >= scores.size(-1))]
    if foreign.numel():
        raise IndexError(f"token id {int(foreign[0])} is none of the {scores.size(-1)} scores")
    chosen = scores.gather(-1, target.unsqueeze(-1))
    surprise = (log_sum_exp(scores) - chosen).squeeze(-1)
    return torch.where(target == pad, 0.0, surprise).sum(-1).mean()


def packed(sequences: Sequence[Tensor]) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return input, target and positions (M,) of sequences in one row, and their mask (M, M).

    Each sequence is shifted by itself. The mask is added to scores: 0 keeps, -inf hides.
    """
    blocks = [causal_mask(len(one) - 1) for one in sequences]
    hidden = torch.block_diag(*(block + 1 for block in blocks))  # type: ignore[no-untyped-call]
    mask = torch.where(hidden == 1, 0.0, -torch.inf)
    places = [torch.arange(len(one) - 1) for one in sequences]
    read = torch.cat([one[:-1] for one in sequences])
    return read, torch.cat([one[1:] for one in sequences]), torch.cat(places), mask


def shifted(target: Tensor, pad: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return what is read and what is to be said (B, T) of (B, T + 1), and how many count."""
    read, said = target[:, :-1], target[:, 1:]
    return read, said, (said != pad).sum()
