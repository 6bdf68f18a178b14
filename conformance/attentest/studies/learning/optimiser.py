"""The optimiser of section 5.3: Adam, and the paper's rate or a constant one."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from attentest_spec.setting import Array


@dataclass(frozen=True)
class Schedule:
    """How large a step is: `constant` where that is given, otherwise the paper's for `d_model`.

    The paper's rate grows for `warmup` steps and falls with the root of the step from there on.
    """

    d_model: int
    warmup: int
    constant: float | None = None

    def rate(self, step: int) -> float:
        """Return the learning rate of `step`, which counts from 1."""
        if self.constant is not None:
            return self.constant
        return float(self.d_model**-0.5 * min(step**-0.5, step * self.warmup**-1.5))


@dataclass
class Adam:
    """Adam with bias correction; its moments by the names of the parameters, zero where new."""

    beta1: float = 0.9
    beta2: float = 0.98
    epsilon: float = 1e-9
    first: dict[str, Array] = field(default_factory=dict)
    second: dict[str, Array] = field(default_factory=dict)

    def update(
        self,
        parameters: Mapping[str, Array],
        gradients: Mapping[str, Array],
        step: int,
        rate: float,
    ) -> dict[str, Array]:
        """Return the parameters after `step` (which counts from 1), in their own precision."""
        return {
            name: self._moved(name, values, gradients[name], step, rate)
            for name, values in parameters.items()
        }

    def _moved(self, name: str, values: Array, gradient: Array, step: int, rate: float) -> Array:
        first = self.first.get(name, np.zeros_like(values))
        second = self.second.get(name, np.zeros_like(values))
        self.first[name] = self.beta1 * first + (1 - self.beta1) * gradient
        self.second[name] = self.beta2 * second + (1 - self.beta2) * gradient**2
        scale = np.sqrt(self.second[name]) / (1 - self.beta2**step) ** 0.5 + self.epsilon
        moved: Array = values - rate / (1 - self.beta1**step) * self.first[name] / scale
        return moved
