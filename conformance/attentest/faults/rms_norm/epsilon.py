"""Faults in the epsilon, and rows of zeros."""

import torch
from torch import Tensor

from attentest.faults.fault import fault
from attentest.faults.reference_models import Hooks, Node

ADDED = {"rms_epsilon_place": "added-to-rms"}


@fault(
    "rms_norm.epsilon-added-to-root",
    "epsilon-place",
    seam="rms_divisor",
    origin="EleutherAI/gpt-neox PR#1342",
)
def epsilon_added_to_root(self: Hooks, square: Tensor, width: int) -> Tensor:
    """Epsilon is added to the root; inside was declared. Small activations differ."""
    return self.rms_root(square) + self.rms_epsilon()


@fault("rms_norm.epsilon-inside-root", "epsilon-place", seam="rms_divisor", choices=ADDED)
def epsilon_inside_root(self: Hooks, square: Tensor, width: int) -> Tensor:
    """Epsilon is inside the root; adding it to the root was declared. Small activations differ."""
    return torch.sqrt(square + self.rms_epsilon())


@fault(
    "rms_norm.epsilon-of-another-library",
    "epsilon",
    seam="rms_epsilon",
    origin="pytorch/torchtitan PR#4395",
)
def epsilon_of_another_library(self: Hooks) -> float:
    """Epsilon is 1e-5 where 1e-6 is declared. Rows of small numbers differ."""
    return 1e-5


@fault("rms_norm.epsilon-squared", "epsilon", seam="rms_epsilon")
def epsilon_squared(self: Hooks) -> float:
    """Epsilon is squared before it is added. Small rows are hardly protected."""
    return float(self.choices.rms_epsilon) ** 2


@fault("rms_norm.epsilon-of-the-sum", "epsilon", seam="rms_divisor")
def epsilon_of_the_sum(self: Hooks, square: Tensor, width: int) -> Tensor:
    """Epsilon is added to the sum of squares, before it is divided. It counts a share of itself."""
    return torch.sqrt((square * width + self.rms_epsilon()) / width)


@fault("rms_norm.epsilon-as-floor", "epsilon", seam="rms_divisor")
def epsilon_as_floor(self: Hooks, square: Tensor, width: int) -> Tensor:
    """The mean square is held above epsilon, and epsilon is not added. Small rows differ."""
    return torch.sqrt(square.clamp(min=self.rms_epsilon()))


@fault(
    "rms_norm.no-epsilon",
    "zero-row-finite",
    seam="rms_epsilon",
    origin="tenstorrent/tt-metal#55347",
)
def no_epsilon(self: Hooks) -> float:
    """Epsilon is left out. Rows of zeros become NaN."""
    return 0.0


@fault("rms_norm.bare-root", "zero-row-gradient", seam="rms_root", choices=ADDED, kind="gradient")
def bare_root(self: Hooks, square: Tensor) -> Tensor:
    """The root is differentiated at zero, with epsilon added outside it.

    Values are right; one row of zeros makes every gradient NaN.
    """
    return square.sqrt()


@fault(
    "rms_norm.epsilon-lost-in-half",
    "zero-row-half-precision",
    seam="widen_row",
    choices={"rms_epsilon": 1e-8},
)
def epsilon_lost_in_half(self: Hooks, x: Tensor) -> Tensor:
    """1e-8 is added in half precision, where it is zero. In float16 a row of zeros is NaN."""
    return x


@fault(
    "rms_norm.epsilon-of-the-scaled-row",
    "epsilon",
    seam="rms_norm",
    origin="apple/coremltools PR#2822",
)
def epsilon_of_the_scaled_row(self: Hooks, module: Node, x: Tensor) -> Tensor:
    """Rows are divided by their largest number first, and epsilon is added after that.

    It counts more the larger that number is.
    """
    wide = self.widen_row(x)
    scaled = wide / wide.abs().amax(dim=-1, keepdim=True)
    rows = self.divide_row(scaled, self.rms_divisor(self.mean_square(scaled), x.shape[-1]))
    return self.weigh_row(module, rows, x.dtype)


@fault("rms_norm.epsilon-added-to-quotient", "formula", seam="rms_norm")
def epsilon_added_to_quotient(self: Hooks, module: Node, x: Tensor) -> Tensor:
    """Epsilon is added to the quotient, outside of the brackets. It protects no row of zeros.

    Every number is off by epsilon, which in float32 shows where a number is small alone.
    """
    wide = self.widen_row(x)
    rows = wide / self.rms_root(self.mean_square(wide)) + self.rms_epsilon()
    return self.weigh_row(module, rows, x.dtype)
