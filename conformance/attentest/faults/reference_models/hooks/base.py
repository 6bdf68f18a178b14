"""The base of all hooks: sizes and choices, dropout and linear maps."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

from torch import Tensor, nn

from attentest_spec import Choices, Sizes, Table


class Base(ABC):
    """The base of the hooks of every component."""

    name: ClassVar[str]
    tables: ClassVar[Mapping[str, Table]]

    def __init__(self, sizes: Sizes, choices: Choices) -> None:
        """Keep what every step is driven by; `memory` is for faults that remember a call."""
        self.sizes = sizes
        self.choices = choices
        self.memory: dict[str, Any] = {}

    def check_sizes(self, *names: str) -> None:
        """Refuse the sizes named when they are below 1, and a dropout that is no probability."""
        for name in names:
            if getattr(self.sizes, name) < 1:
                raise ValueError(f"{name} is {getattr(self.sizes, name)}; it must be at least 1.")
        if not 0 <= self.sizes.dropout < 1:
            raise ValueError(f"dropout is {self.sizes.dropout}; it must be at least 0 and below 1.")

    def check_heads(self) -> None:
        """Refuse a model width that the heads cannot share."""
        width, heads = self.sizes.d_model, self.sizes.heads
        if self.choices.head_width == "d/h" and width % heads:
            raise ValueError(f"A model width of {width} cannot be divided among {heads} heads.")
        if heads % (self.sizes.kv_heads or heads):
            raise ValueError(
                f"{heads} heads cannot share {self.sizes.kv_heads} of keys and values."
            )

    def dropout_rate(self) -> float:
        """Return the probability that a number is dropped in training mode."""
        return self.sizes.dropout

    def is_training(self, module: nn.Module) -> bool:
        """Say whether `module` is in training mode."""
        return module.training

    def dropout(self, module: nn.Module, x: Tensor) -> Tensor:
        """Drop numbers of `x` when `module` is in training mode; every site comes here."""
        rate = self.dropout_rate()
        return self.drop(x, rate) if rate > 0 and self.is_training(module) else x

    @abstractmethod
    def drop(self, x: Tensor, rate: float) -> Tensor:
        """Set numbers to zero with probability `rate` and scale the others up."""

    @abstractmethod
    def initialise(self, weight: Tensor) -> None:
        """Fill a weight of two dimensions with its first random values, in place."""

    @abstractmethod
    def make_linear(self, inputs: int, outputs: int, *, bias: bool = True) -> nn.Module:
        """Build an initialised linear map."""

    @abstractmethod
    def linear(self, layer: Any, x: Tensor) -> Tensor:
        """Apply a linear map made by :meth:`make_linear`."""
