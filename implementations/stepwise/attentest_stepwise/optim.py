"""Step 6 of the course: the learning rate, Adam, and the clipping of gradients.

The rate rises on a line for `warmup_steps` updates, and falls with one over the root of the step
after that. Updates count from 1.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import torch
from torch import Tensor


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


class Adam:
    """Move every parameter by about the rate, against the mean of its gradients.

    Holds a mean of the gradients and a mean of their squares for each parameter, and the number of
    updates. Parameters without a gradient are left out.
    """

    def __init__(
        self,
        parameters: Iterable[Tensor],
        beta1: float = 0.9,
        beta2: float = 0.98,
        eps: float = 1e-9,
    ) -> None:
        self.parameters = list(parameters)  # a generator could be read only once
        self.beta1, self.beta2, self.eps = beta1, beta2, eps
        self.means = [torch.zeros_like(one) for one in self.parameters]
        self.squares = [torch.zeros_like(one) for one in self.parameters]
        self.steps = 0

    @torch.no_grad()
    def step(self, rate: float) -> None:
        """Make one update at the learning rate `rate`."""
        self.steps += 1
        first, second = 1 - self.beta1**self.steps, 1 - self.beta2**self.steps
        for number, parameter in enumerate(self.parameters):
            if parameter.grad is None:
                continue
            gradient = parameter.grad
            mean = self.beta1 * self.means[number] + (1 - self.beta1) * gradient
            square = self.beta2 * self.squares[number] + (1 - self.beta2) * gradient**2
            self.means[number], self.squares[number] = mean, square
            parameter -= rate * (mean / first) / ((square / second).sqrt() + self.eps)


@torch.no_grad()
def clip_gradients(parameters: Iterable[Tensor], limit: float) -> float:
    """Shorten the gradients in place where the norm of all is above `limit`; return that norm."""
    gradients = [one.grad for one in parameters if one.grad is not None]
    norm = math.sqrt(sum(float((one**2).sum()) for one in gradients))
    if norm > limit:
        for gradient in gradients:
            gradient *= limit / norm
    return norm
