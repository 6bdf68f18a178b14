"""The loss of the one-layer Transformer, written out.

Shapes: B batch, T target, V vocabulary.
"""

from __future__ import annotations

import torch
from torch import Tensor


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
