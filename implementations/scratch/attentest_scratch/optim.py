"""The learning rate of the toy experiments: a warm-up on a line, and then always the same."""

from __future__ import annotations

from .model import require_sizes


def rate_at(step: int, peak: float = 1e-3, warmup: int = 1) -> float:
    """Return the learning rate of a step, counted from 1."""
    require_sizes(step=step, warmup=warmup)
    return peak * min(1.0, step / warmup)
