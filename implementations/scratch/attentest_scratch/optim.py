"""The learning rate of the toy experiments, a line and then a constant, and Adam as a function."""

from __future__ import annotations

import torch
from torch import Tensor

from .model import require_sizes


def rate_at(step: int, peak: float = 1e-3, warmup: int = 1) -> float:
    """Return the learning rate of a step, counted from 1."""
    require_sizes(step=step, warmup=warmup)
    return peak * min(1.0, step / warmup)


def adam_update(
    value: Tensor,
    gradient: Tensor,
    state: tuple[Tensor, Tensor, int] | None,
    rate: float,
    betas: tuple[float, float] = (0.9, 0.999),
    eps: float = 1e-8,
) -> tuple[Tensor, tuple[Tensor, Tensor, int]]:
    """Return a parameter after one update, and the state for the next; None begins a run."""
    m, v, t = state or (torch.zeros_like(value), torch.zeros_like(value), 0)
    m = m + (1 - betas[0]) * (gradient - m)
    v = v + (1 - betas[1]) * (gradient * gradient - v)
    t = t + 1
    size = (v / (1 - betas[1] ** t)).sqrt() + eps
    return value - rate * m / (1 - betas[0] ** t) / size, (m, v, t)
