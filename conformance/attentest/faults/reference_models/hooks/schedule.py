"""The hooks of the learning rate; steps count from 1, or from 0 where that is chosen."""

from abc import abstractmethod

import torch
from torch import Tensor

from attentest.faults.reference_models.hooks.base import Base
from attentest.faults.reference_models.modules import Node

ENDING = ("linear", "cosine")
"""The schedules that have a last step."""


class ScheduleHooks(Base):
    """The learning rate of an update."""

    def make_schedule(self) -> Node:
        """Build the schedule, which holds nothing."""
        self.check_schedule()
        return Node(self, "learning_rate")

    def check_schedule(self) -> None:
        """Refuse a warm-up below 1, and a last step before its end."""
        self.check_sizes("d_model", "warmup", "total_steps")
        warmup, last = self.sizes.warmup, self.sizes.total_steps
        if self.choices.schedule in ENDING and last <= warmup:
            raise ValueError(f"total_steps is {last}; it must be above the warm-up, {warmup}.")

    def learning_rate(self, module: Node, step: int) -> Tensor:
        """Return the rate of the update number `step`."""
        self.check_step(step)
        return self.as_rate(self.join_rates(self.count_step(step)))

    def check_step(self, step: int) -> None:
        """Refuse a step below 1."""
        if step < 1:
            raise ValueError(f"step is {step}; updates count from 1.")

    def count_step(self, step: int) -> int:
        """Return the step of the schedule that an update belongs to."""
        return step if self.choices.first_step == "one" else step - 1

    def warmup_steps(self) -> int:
        """Return the number of steps until the peak."""
        return self.sizes.warmup

    def rate_factor(self) -> float:
        """Return the factor of every rate."""
        return self.sizes.factor

    def width_factor(self) -> float:
        """Return the factor that follows from the width of the model."""
        return self.sizes.d_model**-0.5 if self.choices.schedule == "noam" else 1.0

    def as_rate(self, rate: float) -> Tensor:
        """Return the rate as a tensor without axes."""
        return torch.tensor(rate, dtype=torch.float64)

    @abstractmethod
    def peak_rate(self) -> float:
        """Return the rate of the warm-up step."""

    @abstractmethod
    def rising(self, step: int) -> float:
        """Return the rate on the line of the warm-up."""

    @abstractmethod
    def falling(self, step: int) -> float:
        """Return the rate on the curve after the warm-up."""

    @abstractmethod
    def join_rates(self, step: int) -> float:
        """Return the rate of a step of the schedule, from the two pieces."""
