"""The optimisers of the two reference models: as the paper writes Adam, and in fused operations."""

import math

import torch
from torch import Tensor

from attentest.faults.reference_models.hooks import Hooks, State


def _divided(update: Tensor, divisor: Tensor) -> Tensor:
    """Return `update` / `divisor`, 0 where both are 0."""
    still = (divisor == 0) & (update == 0)
    return update / divisor.masked_fill(still, 1.0)


class PlainOptimiser(Hooks):
    """Mean and square corrected, then divided; the norm as the root of a sum."""

    def decay_values(self, values: Tensor, rate: Tensor) -> Tensor:
        """Take a decoupled decay off the parameters."""
        decoupled = self.choices.weight_decay == "decoupled"
        return values - rate * self.decay() * values if decoupled else values

    def next_mean(self, mean: Tensor, gradient: Tensor) -> Tensor:
        """Return the running mean of gradients with one more."""
        beta, _ = self.betas()
        return beta * mean + (1.0 - beta) * gradient

    def next_square(self, square: Tensor, gradient: Tensor) -> Tensor:
        """Return the running mean of squared gradients with one more."""
        _, beta = self.betas()
        return beta * square + (1.0 - beta) * gradient**2

    def direction(self, state: State) -> Tensor:
        """Return the update at a rate of 1."""
        first, second = self.corrections(state["step"])
        mean, square = state["mean"] / first, state["square"] / second
        match self.choices.adam_epsilon_place:
            case "inside-root":
                return _divided(mean, (square + self.adam_epsilon()).sqrt())
            case "uncorrected":
                return _divided(mean, square.sqrt() + self.adam_epsilon() / math.sqrt(second))
            case _:
                return _divided(mean, square.sqrt() + self.adam_epsilon())

    def move(self, values: Tensor, rate: Tensor, direction: Tensor) -> Tensor:
        """Return the parameters moved by an update."""
        return values - rate * direction

    def gradient_norm(self, gradients: Tensor, groups: Tensor) -> Tensor:
        """Return the norm of all gradients."""
        return gradients.square().sum().sqrt()

    def shorten(self, gradients: Tensor, norm: Tensor, limit: Tensor) -> Tensor:
        """Return the gradients, shortened where their norm is above the limit."""
        length = norm + self.clip_epsilon()
        return gradients * (limit / length) if length > limit else gradients.clone()


class FusedOptimiser(Hooks):
    """Interpolations and products, the corrections in one factor; the norm of norms."""

    def decay_values(self, values: Tensor, rate: Tensor) -> Tensor:
        """Take a decoupled decay off the parameters."""
        decoupled = self.choices.weight_decay == "decoupled"
        return values * (1.0 - rate * self.decay()) if decoupled else values

    def next_mean(self, mean: Tensor, gradient: Tensor) -> Tensor:
        """Return the running mean of gradients with one more."""
        return torch.lerp(mean, gradient, 1.0 - self.betas()[0])

    def next_square(self, square: Tensor, gradient: Tensor) -> Tensor:
        """Return the running mean of squared gradients with one more."""
        beta = self.betas()[1]
        return torch.addcmul(square * beta, gradient, gradient, value=1.0 - beta)

    def direction(self, state: State) -> Tensor:
        """Return the update at a rate of 1."""
        first, second = self.corrections(state["step"])
        factor, epsilon = math.sqrt(second) / first, self.adam_epsilon()
        match self.choices.adam_epsilon_place:
            case "inside-root":
                divisor = (state["square"] + second * epsilon).sqrt()
            case "uncorrected":
                divisor = state["square"].sqrt() + epsilon
            case _:
                divisor = state["square"].sqrt() + math.sqrt(second) * epsilon
        return factor * _divided(state["mean"], divisor)

    def move(self, values: Tensor, rate: Tensor, direction: Tensor) -> Tensor:
        """Return the parameters moved by an update."""
        return torch.addcmul(values, rate, direction, value=-1.0)

    def gradient_norm(self, gradients: Tensor, groups: Tensor) -> Tensor:
        """Return the norm of all gradients: that of the norms of the arrays."""
        norms = [torch.linalg.vector_norm(one) for one in self.arrays(gradients, groups)]
        norm: Tensor = torch.linalg.vector_norm(torch.stack(norms))
        return norm

    def shorten(self, gradients: Tensor, norm: Tensor, limit: Tensor) -> Tensor:
        """Return the gradients, shortened where their norm is above the limit."""
        length = norm + self.clip_epsilon()
        return gradients * (limit / length.clamp_min(limit))
