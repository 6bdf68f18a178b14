"""Faults in the mean, the variance and the division."""

import torch
from torch import Tensor

from attentest.faults.fault import fault
from attentest.faults.reference_models import Hooks, Node

UNBIASED = {"norm_variance": "unbiased"}


@fault("layer_norm.mean-kept", "formula", seam="centre")
def mean_kept(self: Hooks, x: Tensor, mean: Tensor) -> Tensor:
    """The mean is not taken out. Rows keep their centre; inputs around zero hide it."""
    return x


@fault("layer_norm.divided-by-variance", "formula", seam="normalise")
def divided_by_variance(self: Hooks, centred: Tensor, variance: Tensor) -> Tensor:
    """Deviations are divided by the variance, not by its root.

    Large rows come out small and small ones large; unit scale hides it.
    """
    return centred / (variance + self.epsilon())


@fault("layer_norm.mean-absolute-deviation", "formula", seam="variance")
def mean_absolute_deviation(self: Hooks, centred: Tensor) -> Tensor:
    """Deviations are divided by the mean of their sizes, not by the root of their squares.

    Rows come out a quarter too large, more or less.
    """
    return centred.abs().mean(dim=-1, keepdim=True).square()


@fault("layer_norm.sample-deviation", "variance", seam="variance", origin="B059")
def sample_deviation(self: Hooks, centred: Tensor) -> Tensor:
    """The sample deviation is used; the biased one was declared. 13 % off at width 4."""
    return centred.square().sum(dim=-1, keepdim=True) / (centred.shape[-1] - 1)


@fault(
    "layer_norm.population-deviation", "variance", seam="variance", origin="B059", choices=UNBIASED
)
def population_deviation(self: Hooks, centred: Tensor) -> Tensor:
    """The biased deviation is used; the sample one was declared. 13 % off at width 4."""
    return centred.square().mean(dim=-1, keepdim=True)


@fault("layer_norm.squeezed", "shapes", seam="layer_norm")
def squeezed(self: Hooks, module: Node, x: Tensor) -> Tensor:
    """Axes of length one are squeezed. A batch of one sample changes its shape."""
    return self.correct.layer_norm(module, x).squeeze()


@fault("layer_norm.over-time-and-features", "per-position", seam="layer_norm", origin="B063")
def over_time_and_features(self: Hooks, module: Node, x: Tensor) -> Tensor:
    """Mean and variance run over positions and columns. Tokens depend on padding and the future."""
    flat = x.reshape(*x.shape[:-2], 1, -1)
    centred = flat - flat.mean(dim=-1, keepdim=True)
    normalised = self.correct.normalise(centred, self.correct.variance(centred))
    return self.correct.affine(module, normalised.reshape(x.shape))


@fault("layer_norm.deviation-over-sentence", "per-position", seam="variance", origin="B063")
def deviation_over_sentence(self: Hooks, centred: Tensor) -> Tensor:
    """The deviation is that of the whole sequence. One large row makes the others small."""
    single = self.correct.variance(centred)
    return single.mean(dim=-2, keepdim=True).expand_as(single) if single.dim() > 1 else single


@fault("layer_norm.deviation-over-batch", "per-position", seam="variance")
def deviation_over_batch(self: Hooks, centred: Tensor) -> Tensor:
    """The deviation is that of the whole batch. Samples affect each other."""
    single = self.correct.variance(centred)
    return single.mean(dim=0, keepdim=True).expand_as(single)


@fault("layer_norm.root-mean-square", "shift-law", seam="layer_norm")
def root_mean_square(self: Hooks, module: Node, x: Tensor) -> Tensor:
    """The deviation is taken about zero, though the mean is taken out above.

    Right for rows around zero; a shifted row comes out small.
    """
    wide = self.correct.widen(x)
    size = torch.sqrt(wide.square().mean(dim=-1, keepdim=True) + self.epsilon())
    normalised = (wide - self.correct.mean(wide)) / size
    return self.correct.affine(module, normalised).to(x.dtype)


@fault("layer_norm.mean-of-one-more", "shift-law", seam="mean")
def mean_of_one_more(self: Hooks, x: Tensor) -> Tensor:
    """The mean is divided by the width plus one.

    A share of the mean stays in every row, the more so the narrower it is.
    """
    return x.sum(dim=-1, keepdim=True) / (x.shape[-1] + 1)


@fault("layer_norm.not-scaled", "scale-law", seam="normalise")
def not_scaled(self: Hooks, centred: Tensor, variance: Tensor) -> Tensor:
    """Rows are centred and not divided by their deviation.

    The size of the input comes through, and deep stacks blow up.
    """
    return centred


@fault("layer_norm.sign-lost", "scale-law", seam="normalise")
def sign_lost(self: Hooks, centred: Tensor, variance: Tensor) -> Tensor:
    """Deviations lose their sign. Above and below the mean look the same."""
    return self.correct.normalise(centred, variance).abs()


@fault("layer_norm.statistics-remembered", "scale-law", seam="variance")
def statistics_remembered(self: Hooks, centred: Tensor) -> Tensor:
    """The deviation of the first call of a shape is kept and used for the next ones.

    The first call is right; later ones carry its scale.
    """
    kept = self.memory.setdefault(f"{tuple(centred.shape)}", self.correct.variance(centred))
    remembered: Tensor = kept.detach().to(centred)
    return remembered


@fault("layer_norm.one-pass-variance", "large-offset", seam="layer_norm")
def one_pass_variance(self: Hooks, module: Node, x: Tensor) -> Tensor:
    """The variance is the mean of the squares less the square of the mean.

    Far from zero it has lost its digits, and may be negative.
    """
    wide = self.correct.widen(x)
    mean = self.correct.mean(wide)
    variance = wide.square().mean(dim=-1, keepdim=True) - mean.square()
    normalised = self.correct.normalise(wide - mean, variance)
    return self.correct.affine(module, normalised).to(x.dtype)


@fault("layer_norm.variance-floor", "formula", seam="variance")
def variance_floor(self: Hooks, centred: Tensor) -> Tensor:
    """The variance is clamped to 1e-10 before epsilon is added. Rows of small numbers differ."""
    return self.correct.variance(centred).clamp(min=1e-10)


@fault("layer_norm.wide-rows-unbiased", "formula", seam="variance")
def wide_rows_unbiased(self: Hooks, centred: Tensor) -> Tensor:
    """Rows wider than 16 use the sample deviation. Small tests pass, real widths are off."""
    width = centred.shape[-1]
    found = self.correct.variance(centred)
    return found * width / (width - 1) if width > 16 else found
