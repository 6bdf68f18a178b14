"""Faults in the epsilon, and rows that are constant."""

# ruff: noqa: F811
# mypy: disable-error-code="no-redef"

import torch
from torch import Tensor

from attentest.faults.fault import fault
from attentest.specimens import Seams

OUTSIDE = {"norm_epsilon_place": "added-to-deviation"}


@fault(
    "layer_norm.epsilon-place-outside",
    clause="layer_norm.epsilon-place",
    origin="B060",
    wrong="Epsilon is added to the deviation and was declared to stand inside the root.",
    effect="The same at unit scale; several times too large where activations are small.",
)
def normalise(self: Seams, centred: Tensor, variance: Tensor) -> Tensor:
    return centred / (self.root(variance) + self.epsilon())


@fault(
    "layer_norm.epsilon-place-inside",
    clause="layer_norm.epsilon-place",
    origin="B060",
    wrong="Epsilon stands inside the root and was declared to be added to the deviation.",
    effect="The same at unit scale; far too small where activations are small.",
    choices=OUTSIDE,
)
def normalise(self: Seams, centred: Tensor, variance: Tensor) -> Tensor:
    return centred / torch.sqrt(variance + self.epsilon())


@fault(
    "layer_norm.epsilon-of-another-library",
    clause="layer_norm.epsilon",
    wrong="Epsilon is 1e-6 where 1e-5 is declared.",
    effect="Small activations of a converted model are shifted; unit scale hides it.",
)
def epsilon(self: Seams) -> float:
    return 1e-6


@fault(
    "layer_norm.epsilon-squared",
    clause="layer_norm.epsilon",
    wrong="Epsilon is squared before it is added.",
    effect="The guard against small deviations is ten thousand times weaker than declared.",
)
def epsilon(self: Seams) -> float:
    return float(self.choices.norm_epsilon) ** 2


@fault(
    "layer_norm.epsilon-as-floor",
    clause="layer_norm.epsilon",
    wrong="The variance is held above epsilon, and epsilon is not added to it.",
    effect="Constant rows are safe, ordinary ones slightly too large.",
)
def normalise(self: Seams, centred: Tensor, variance: Tensor) -> Tensor:
    return centred / torch.sqrt(variance.clamp(min=self.epsilon()))


@fault(
    "layer_norm.no-epsilon",
    clause="layer_norm.constant-row-finite",
    wrong="Epsilon is left out.",
    effect="Pads and fresh zeros become NaN.",
)
def epsilon(self: Seams) -> float:
    return 0.0


@fault(
    "layer_norm.epsilon-relative",
    clause="layer_norm.constant-row-finite",
    wrong="Epsilon multiplies the variance in place of being added to it.",
    effect="Ordinary rows hide it; a row without variance is 0 / 0.",
)
def normalise(self: Seams, centred: Tensor, variance: Tensor) -> Tensor:
    return centred / torch.sqrt(variance * (1.0 + self.epsilon()))


@fault(
    "layer_norm.bare-root",
    clause="layer_norm.constant-row-gradient",
    origin="B061",
    wrong="The root is differentiated at zero, with epsilon added outside it.",
    effect="Values are right; one constant row makes every gradient NaN.",
    choices=OUTSIDE,
    kind="gradient",
)
def root(self: Seams, variance: Tensor) -> Tensor:
    return variance.sqrt()


@fault(
    "layer_norm.hypotenuse",
    clause="layer_norm.constant-row-gradient",
    origin="B061",
    wrong="The divisor is the hypotenuse of a deviation and the root of epsilon.",
    effect="Values are right; the deviation's slope at zero is infinite, times zero.",
    kind="gradient",
)
def normalise(self: Seams, centred: Tensor, variance: Tensor) -> Tensor:
    guard = torch.full_like(variance, self.epsilon() ** 0.5)
    return centred / torch.hypot(variance.sqrt(), guard)


@fault(
    "layer_norm.epsilon-lost-in-half",
    clause="layer_norm.constant-row-half-precision",
    origin="B065",
    wrong="Everything is computed in the half precision itself, where 1e-12 is zero.",
    effect="In float16 a row of zeros is 0 / 0.",
    choices={"norm_epsilon": 1e-12},
)
def widen(self: Seams, x: Tensor) -> Tensor:
    return x
