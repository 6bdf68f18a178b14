"""Faults in the clipping of gradients."""

import torch
from torch import Tensor

from attentest.faults.fault import fault
from attentest.faults.reference_models import Hooks, Node

WITH_EPSILON = {"clip_epsilon": 1e-6}


@fault("optimiser.nothing-clipped", "clipping-formula", seam="clip", origin="M028")
def nothing_clipped(
    self: Hooks, module: Node, gradients: Tensor, groups: Tensor, limit: Tensor
) -> Tensor:
    """The parameters are a generator, which is empty the second time. Nothing is clipped."""
    every = (one for one in self.arrays(gradients, groups))
    norm = self.gradient_norm(torch.cat(list(every)), groups)
    clipped = [self.correct.shorten(one, norm, limit) for one in every]
    return torch.cat(clipped) if clipped else gradients.clone()


@fault("optimiser.limit-dropped", "clipping-formula", seam="shorten", origin="M029")
def limit_dropped(self: Hooks, gradients: Tensor, norm: Tensor, limit: Tensor) -> Tensor:
    """The limit is not passed on. Gradients are clipped to a norm of 1e6, that is, never."""
    return self.correct.shorten(gradients, norm, torch.full_like(limit, 1e6))


@fault("optimiser.limit-of-one", "clipping-formula", seam="shorten")
def limit_of_one(self: Hooks, gradients: Tensor, norm: Tensor, limit: Tensor) -> Tensor:
    """The limit is always 1. Other limits have no effect."""
    return self.correct.shorten(gradients, norm, torch.ones_like(limit))


@fault("optimiser.norm-without-root", "clipping-formula", seam="gradient_norm")
def norm_without_root(self: Hooks, gradients: Tensor, groups: Tensor) -> Tensor:
    """The root of the sum of squares is left out. Large gradients are clipped far too much."""
    return self.correct.gradient_norm(gradients, groups) ** 2


@fault("optimiser.sum-of-magnitudes", "clipping-formula", seam="gradient_norm")
def sum_of_magnitudes(self: Hooks, gradients: Tensor, groups: Tensor) -> Tensor:
    """The norm is the sum of magnitudes. Gradients are clipped below the limit."""
    return gradients.abs().sum()


@fault("optimiser.clipped-array-by-array", "clipping-global", seam="clip")
def clipped_array_by_array(
    self: Hooks, module: Node, gradients: Tensor, groups: Tensor, limit: Tensor
) -> Tensor:
    """Every array is clipped by itself. Their sizes against each other are lost."""
    parts = self.arrays(gradients, groups)
    whole = (torch.tensor([len(one)]) for one in parts)
    return torch.cat(
        [
            self.correct.clip(module, one, size, limit)
            for one, size in zip(parts, whole, strict=True)
        ]
    )


@fault("optimiser.norm-of-the-last", "clipping-global", seam="gradient_norm")
def norm_of_the_last(self: Hooks, gradients: Tensor, groups: Tensor) -> Tensor:
    """The norm is that of the last array. Large gradients elsewhere are not seen."""
    last = self.arrays(gradients, groups)[-1]
    return self.correct.gradient_norm(last, groups[-1:])


@fault("optimiser.sum-of-norms", "clipping-global", seam="gradient_norm")
def sum_of_norms(self: Hooks, gradients: Tensor, groups: Tensor) -> Tensor:
    """The norms of the arrays are added. A model of more arrays is clipped more."""
    parts = self.arrays(gradients, groups)
    return torch.stack([one.norm() for one in parts]).sum()


@fault("optimiser.always-scaled", "clipping-below-the-limit", seam="shorten")
def always_scaled(self: Hooks, gradients: Tensor, norm: Tensor, limit: Tensor) -> Tensor:
    """Gradients are scaled to the limit in any case. Small ones are lengthened."""
    return gradients * (limit / norm) if norm > 0 else gradients.clone()


@fault("optimiser.shortened-by-epsilon", "clipping-below-the-limit", seam="shorten")
def shortened_by_epsilon(self: Hooks, gradients: Tensor, norm: Tensor, limit: Tensor) -> Tensor:
    """The factor of small gradients is not exactly 1. Training without clipping is another."""
    return self.correct.shorten(gradients, norm, limit) * (1.0 - 1e-6 * (norm <= limit))


@fault("optimiser.cut-by-value", "clipping-direction", seam="shorten")
def cut_by_value(self: Hooks, gradients: Tensor, norm: Tensor, limit: Tensor) -> Tensor:
    """Every gradient is cut to the limit by itself. The direction is another."""
    return gradients.clamp(-limit, limit) if norm > limit else gradients.clone()


@fault("optimiser.magnitudes-kept", "clipping-direction", seam="shorten")
def magnitudes_kept(self: Hooks, gradients: Tensor, norm: Tensor, limit: Tensor) -> Tensor:
    """Clipped gradients lose their sign. Parameters move down whatever their gradient is."""
    clipped = self.correct.shorten(gradients, norm, limit)
    return clipped.abs() if norm > limit else clipped


@fault("optimiser.clip-epsilon-of-a-percent", "clip-epsilon", seam="clip_epsilon")
def clip_epsilon_of_a_percent(self: Hooks) -> float:
    """An epsilon of 0.01 is added to the norm. Small gradients are clipped too much."""
    return 0.01


@fault("optimiser.clip-epsilon-undeclared", "clip-epsilon", seam="clip_epsilon")
def clip_epsilon_undeclared(self: Hooks) -> float:
    """An epsilon of 1e-6 is added to the norm, and not declared. Runs are not repeatable."""
    return 1e-6


@fault(
    "optimiser.clip-epsilon-subtracted", "clip-epsilon", seam="clip_epsilon", choices=WITH_EPSILON
)
def clip_epsilon_subtracted(self: Hooks) -> float:
    """The epsilon is subtracted from the norm. Clipped gradients are longer than the limit."""
    return -self.correct.clip_epsilon()


@fault("optimiser.zero-norm-divided", "clipping-zeros", seam="shorten")
def zero_norm_divided(self: Hooks, gradients: Tensor, norm: Tensor, limit: Tensor) -> Tensor:
    """The limit is divided by a norm of zero. All gradients become NaN."""
    factor = limit / norm
    return self.correct.shorten(gradients, norm, limit) * (factor if norm == 0 else 1.0)


@fault("optimiser.zeros-made-small", "clipping-zeros", seam="shorten")
def zeros_made_small(self: Hooks, gradients: Tensor, norm: Tensor, limit: Tensor) -> Tensor:
    """Zeros are replaced by a small number. Parameters without a gradient drift."""
    return self.correct.shorten(gradients, norm, limit) + 1e-7 * (gradients == 0)
