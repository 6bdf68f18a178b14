"""Unusual implementations of the layer norm."""

import torch
from torch import Tensor, nn
from torch.nn import functional

from attentest.faults.unusual.member import module
from attentest_spec import Limits, Sizes, Table

TABLE: Table = {"gain": "gain", "bias": "bias"}


class Norm(nn.Module):
    """The weight (gamma) and the bias; subclasses normalise."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        self.gain = nn.Parameter(torch.ones(sizes.d_model))
        self.bias = nn.Parameter(torch.zeros(sizes.d_model))


def widened(x: Tensor) -> Tensor:
    """Return half precision as float32: the squares of float16 do not fit in it."""
    return x.to(torch.promote_types(x.dtype, torch.float32))


class VarMean(Norm):
    """Mean and variance in one call, and the inverse of a root.

    No float16: a variance can be larger than its largest number.
    """

    def forward(self, x: Tensor) -> Tensor:
        """Return x normalised."""
        variance, mean = torch.var_mean(x, dim=-1, correction=0, keepdim=True)
        return torch.addcmul(self.bias, (x - mean) * torch.rsqrt(variance + 1e-6), self.gain)


class LibraryNorm(Norm):
    """The function of torch."""

    def forward(self, x: Tensor) -> Tensor:
        """Return x normalised."""
        return functional.layer_norm(x, x.shape[-1:], self.gain, self.bias, eps=1e-5)


class CentringMatrix(Norm):
    """The mean is subtracted by the matrix I - 1/n."""

    def forward(self, x: Tensor) -> Tensor:
        """Return x normalised."""
        width, wide = x.shape[-1], widened(x)
        matrix = torch.eye(width, dtype=wide.dtype, device=x.device) - 1.0 / width
        centred = wide @ matrix
        variance = (centred * centred).sum(dim=-1, keepdim=True) / width
        return (self.gain * centred / (variance + 1e-5).sqrt() + self.bias).to(x.dtype)


class RootMeanSquare(Norm):
    """Centred rows are normalised by an RMS norm with the same epsilon."""

    def forward(self, x: Tensor) -> Tensor:
        """Return x normalised."""
        centred = x - x.mean(dim=-1, keepdim=True)
        return functional.rms_norm(centred, x.shape[-1:], self.gain, eps=1e-8) + self.bias


class Besselian(Norm):
    """The tutorial's: deviation from n - 1, epsilon outside of the root."""

    def forward(self, x: Tensor) -> Tensor:
        """Return x normalised; a root of exactly zero keeps a finite gradient."""
        wide = widened(x)
        centred = wide - wide.mean(dim=-1, keepdim=True)
        variance = centred.square().sum(dim=-1, keepdim=True) / (x.shape[-1] - 1)
        flat = variance == 0
        deviation = torch.where(flat, 0.0, torch.where(flat, 1.0, variance).sqrt())
        return (self.gain * centred / (deviation + 1e-6) + self.bias).to(x.dtype)


def besselian(sizes: Sizes) -> Besselian:
    """Refuse a width that has no unbiased variance."""
    if sizes.d_model < 2:
        raise ValueError(f"A width of {sizes.d_model} has no unbiased variance.")
    return Besselian(sizes)


MEMBERS = (
    module(
        "layer_norm",
        VarMean,
        "layer norm by var_mean, rsqrt and addcmul",
        TABLE,
        Limits(dropout=False, precisions=("float64", "float32", "bfloat16")),
        norm_epsilon=1e-6,
    ),
    module("layer_norm", LibraryNorm, "layer norm by torch's own function", TABLE),
    module("layer_norm", CentringMatrix, "layer norm by a product with the centring matrix", TABLE),
    module(
        "layer_norm",
        RootMeanSquare,
        "layer norm as the RMS norm of centred rows",
        TABLE,
        norm_epsilon=1e-8,
    ),
    module(
        "layer_norm",
        besselian,
        "layer norm with the unbiased deviation and epsilon added to it",
        TABLE,
        norm_epsilon=1e-6,
        norm_variance="unbiased",
        norm_epsilon_place="added-to-deviation",
    ),
)
