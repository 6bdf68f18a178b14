"""Step 6 of the course: the learning rate.

The rate rises on a line for `warmup_steps` updates, and falls with one over the root of the step
after that. Updates count from 1.
"""

from __future__ import annotations

import math


def learning_rate(step: int, d_model: int, warmup_steps: int = 4000, factor: float = 1.0) -> float:
    """Return the rate of update number `step`.

    Raises ValueError for a step, a width or a warm-up below 1.
    """
    for name, value in {"step": step, "d_model": d_model, "warmup_steps": warmup_steps}.items():
        if value < 1:
            raise ValueError(f"{name} must be at least 1, got {value}")
    rising = step / (warmup_steps * math.sqrt(warmup_steps))
    falling = 1 / math.sqrt(step)
    return factor * min(rising, falling) / math.sqrt(d_model)
