"""Faults in the epsilon, and rows that are constant."""

import torch
from torch import Tensor

from attentest.faults.fault import fault
from attentest.faults.reference_models import Hooks

OUTSIDE = {"norm_epsilon_place": "added-to-deviation"}


@fault("layer_norm.epsilon-place-outside", "epsilon-place", seam="normalise", origin="B060")
def epsilon_place_outside(self: Hooks, centred: Tensor, variance: Tensor) -> Tensor:
    """Epsilon is added to the deviation; inside the root was declared. Small activations differ."""
    return centred / (self.root(variance) + self.epsilon())


@fault(
    "layer_norm.epsilon-place-inside",
    "epsilon-place",
    seam="normalise",
    origin="B060",
    choices=OUTSIDE,
)
def epsilon_place_inside(self: Hooks, centred: Tensor, variance: Tensor) -> Tensor:
    """Epsilon is inside the root; adding it to the deviation was declared.

    Small activations differ.
    """
    return centred / torch.sqrt(variance + self.epsilon())


@fault("layer_norm.epsilon-of-another-library", "epsilon", seam="epsilon")
def epsilon_of_another_library(self: Hooks) -> float:
    """Epsilon is 1e-6 where 1e-5 is declared. Rows of small numbers differ."""
    return 1e-6


@fault("layer_norm.epsilon-squared", "epsilon", seam="epsilon")
def epsilon_squared(self: Hooks) -> float:
    """Epsilon is squared before it is added. Small rows are hardly protected."""
    return float(self.choices.norm_epsilon) ** 2


@fault("layer_norm.epsilon-as-floor", "epsilon", seam="normalise")
def epsilon_as_floor(self: Hooks, centred: Tensor, variance: Tensor) -> Tensor:
    """The variance is held above epsilon, and epsilon is not added to it.

    Constant rows are safe, ordinary ones slightly too large.
    """
    return centred / torch.sqrt(variance.clamp(min=self.epsilon()))


@fault("layer_norm.no-epsilon", "constant-row-finite", seam="epsilon")
def no_epsilon(self: Hooks) -> float:
    """Epsilon is left out. Constant rows become NaN."""
    return 0.0


@fault("layer_norm.epsilon-relative", "constant-row-finite", seam="normalise")
def epsilon_relative(self: Hooks, centred: Tensor, variance: Tensor) -> Tensor:
    """Epsilon multiplies the variance. A constant row is 0 / 0."""
    return centred / torch.sqrt(variance * (1.0 + self.epsilon()))


@fault(
    "layer_norm.bare-root",
    "constant-row-gradient",
    seam="root",
    origin="B061",
    choices=OUTSIDE,
    kind="gradient",
)
def bare_root(self: Hooks, variance: Tensor) -> Tensor:
    """The root is differentiated at zero, with epsilon added outside it.

    Values are right; one constant row makes every gradient NaN.
    """
    return variance.sqrt()


@fault(
    "layer_norm.hypotenuse",
    "constant-row-gradient",
    seam="normalise",
    origin="B061",
    kind="gradient",
)
def hypotenuse(self: Hooks, centred: Tensor, variance: Tensor) -> Tensor:
    """The divisor is the hypotenuse of a deviation and the root of epsilon.

    Values are right; the deviation's slope at zero is infinite, times zero.
    """
    guard = torch.full_like(variance, self.epsilon() ** 0.5)
    return centred / torch.hypot(variance.sqrt(), guard)


@fault(
    "layer_norm.epsilon-lost-in-half",
    "constant-row-half-precision",
    seam="widen",
    origin="B065",
    choices={"norm_epsilon": 1e-12},
)
def epsilon_lost_in_half(self: Hooks, x: Tensor) -> Tensor:
    """1e-12 is added in half precision, where it is zero. In float16 a row of zeros is NaN."""
    return x
