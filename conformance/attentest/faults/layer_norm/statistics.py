"""Faults in mean, variance and what is divided by what."""

# ruff: noqa: F811
# mypy: disable-error-code="no-redef"

import torch
from torch import Tensor

from attentest.faults.fault import fault
from attentest.specimens import Node, Seams

UNBIASED = {"norm_variance": "unbiased"}


@fault(
    "layer_norm.mean-kept",
    clause="layer_norm.formula",
    wrong="The mean is not taken out.",
    effect="Rows keep their centre; inputs around zero hide it.",
)
def centre(self: Seams, x: Tensor, mean: Tensor) -> Tensor:
    return x


@fault(
    "layer_norm.divided-by-variance",
    clause="layer_norm.formula",
    wrong="Deviations are divided by the variance, not by its root.",
    effect="Large rows come out small and small ones large; unit scale hides it.",
)
def normalise(self: Seams, centred: Tensor, variance: Tensor) -> Tensor:
    return centred / (variance + self.epsilon())


@fault(
    "layer_norm.mean-absolute-deviation",
    clause="layer_norm.formula",
    wrong="Deviations are divided by the mean of their sizes, not by the root of their squares.",
    effect="Rows come out a quarter too large, more or less.",
)
def variance(self: Seams, centred: Tensor) -> Tensor:
    return centred.abs().mean(dim=-1, keepdim=True).square()


@fault(
    "layer_norm.sample-deviation",
    clause="layer_norm.variance",
    origin="B059",
    wrong="Squared deviations are divided by the width less one; the width was declared.",
    effect="13 % off at width 4, 0.1 % at width 512.",
)
def variance(self: Seams, centred: Tensor) -> Tensor:
    return centred.square().sum(dim=-1, keepdim=True) / (centred.shape[-1] - 1)


@fault(
    "layer_norm.population-deviation",
    clause="layer_norm.variance",
    origin="B059",
    wrong="Squared deviations are divided by the width; the width less one was declared.",
    effect="13 % off at width 4, 0.1 % at width 512.",
    choices=UNBIASED,
)
def variance(self: Seams, centred: Tensor) -> Tensor:
    return centred.square().mean(dim=-1, keepdim=True)


@fault(
    "layer_norm.squeezed",
    clause="layer_norm.shapes",
    wrong="Axes of length one are dropped from the output.",
    effect="A batch of one, or a sentence of one word, changes its shape.",
)
def layer_norm(self: Seams, module: Node, x: Tensor) -> Tensor:
    return self.sound.layer_norm(module, x).squeeze()


@fault(
    "layer_norm.over-time-and-features",
    clause="layer_norm.per-position",
    origin="B063",
    wrong="Mean and variance run over positions and columns together.",
    effect="Every word depends on the length of its sentence, on pads and on the future.",
)
def layer_norm(self: Seams, module: Node, x: Tensor) -> Tensor:
    flat = x.reshape(*x.shape[:-2], 1, -1)
    centred = flat - flat.mean(dim=-1, keepdim=True)
    normalised = self.sound.normalise(centred, self.sound.variance(centred))
    return self.sound.affine(module, normalised.reshape(x.shape))


@fault(
    "layer_norm.deviation-over-sentence",
    clause="layer_norm.per-position",
    origin="B063",
    wrong="The mean is that of the row, the deviation that of the sentence.",
    effect="A loud word makes all others quiet.",
)
def variance(self: Seams, centred: Tensor) -> Tensor:
    single = self.sound.variance(centred)
    return single.mean(dim=-2, keepdim=True).expand_as(single) if single.dim() > 1 else single


@fault(
    "layer_norm.deviation-over-batch",
    clause="layer_norm.per-position",
    wrong="The deviation is that of all sentences of the batch.",
    effect="A sentence depends on the ones it was batched with.",
)
def variance(self: Seams, centred: Tensor) -> Tensor:
    single = self.sound.variance(centred)
    return single.mean(dim=0, keepdim=True).expand_as(single)


@fault(
    "layer_norm.root-mean-square",
    clause="layer_norm.shift-law",
    wrong="The deviation is taken about zero, though the mean is taken out above.",
    effect="Right for rows around zero; a shifted row comes out small.",
)
def layer_norm(self: Seams, module: Node, x: Tensor) -> Tensor:
    wide = self.sound.widen(x)
    size = torch.sqrt(wide.square().mean(dim=-1, keepdim=True) + self.epsilon())
    normalised = (wide - self.sound.mean(wide)) / size
    return self.sound.affine(module, normalised).to(x.dtype)


@fault(
    "layer_norm.mean-of-one-more",
    clause="layer_norm.shift-law",
    wrong="The mean is divided by the width plus one.",
    effect="A share of the mean stays in every row, the more so the narrower it is.",
)
def mean(self: Seams, x: Tensor) -> Tensor:
    return x.sum(dim=-1, keepdim=True) / (x.shape[-1] + 1)


@fault(
    "layer_norm.not-scaled",
    clause="layer_norm.scale-law",
    wrong="Rows are centred and not divided by their deviation.",
    effect="The size of the input comes through, and deep stacks blow up.",
)
def normalise(self: Seams, centred: Tensor, variance: Tensor) -> Tensor:
    return centred


@fault(
    "layer_norm.sign-lost",
    clause="layer_norm.scale-law",
    wrong="Deviations lose their sign.",
    effect="Above and below the mean look the same.",
)
def normalise(self: Seams, centred: Tensor, variance: Tensor) -> Tensor:
    return self.sound.normalise(centred, variance).abs()


@fault(
    "layer_norm.statistics-remembered",
    clause="layer_norm.scale-law",
    wrong="The deviation of the first call of a shape is kept and used for the next ones.",
    effect="The first call is right; later ones carry its scale.",
)
def variance(self: Seams, centred: Tensor) -> Tensor:
    kept = self.memory.setdefault(f"{tuple(centred.shape)}", self.sound.variance(centred))
    remembered: Tensor = kept.detach().to(centred)
    return remembered


@fault(
    "layer_norm.one-pass-variance",
    clause="layer_norm.large-offset",
    wrong="The variance is the mean of the squares less the square of the mean.",
    effect="Far from zero it has lost its digits, and may be negative.",
)
def layer_norm(self: Seams, module: Node, x: Tensor) -> Tensor:
    wide = self.sound.widen(x)
    mean = self.sound.mean(wide)
    variance = wide.square().mean(dim=-1, keepdim=True) - mean.square()
    normalised = self.sound.normalise(wide - mean, variance)
    return self.sound.affine(module, normalised).to(x.dtype)


@fault(
    "layer_norm.variance-floor",
    clause="layer_norm.formula",
    wrong="The variance is kept above 1e-10 beside the epsilon.",
    effect="Rows of small numbers come out otherwise than in every other implementation.",
)
def variance(self: Seams, centred: Tensor) -> Tensor:
    return self.sound.variance(centred).clamp(min=1e-10)
