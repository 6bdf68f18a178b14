"""Parameters that a module is built with and that show nothing: zeros, or memory without numbers.

An output projection of zeros, as in residual branches that begin as nothing, a gain of zeros, or
weights that are never initialised hide what the input has to do with the output, and with it every
convention.
"""

from typing import TypeVar

import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from attentest.targets.adapt.parameters.words import BIAS, words

T = TypeVar("T")

_LEAST, _MOST = 1e-6, 1e4
"""Magnitudes between which the largest number of an initialised matrix lies; biases may be 0."""


def with_numbers(built: T) -> T:
    """Give trained parameters of `built` that show nothing random numbers; return `built`.

    What is frozen stays: it may be a table. Vectors of zeros stay where they are biases by their
    names, which begin as that; a gain of zeros hides all that is normed.
    """
    if not isinstance(built, nn.Module):
        return built
    source = torch.Generator().manual_seed(2)
    with torch.no_grad():
        for name, one in built.named_parameters():
            if is_lazy(one) or not (one.requires_grad and one.is_floating_point()):
                continue
            vector = one.dim() < 2 or one.numel() == max(one.shape)
            biased = vector and bool(BIAS & {*words(name.rpartition(".")[2])})
            if _has_no_numbers(one) or (not biased and _largest(one) < _LEAST):
                noise = torch.randn(one.shape, generator=source, dtype=torch.float64)
                one.copy_(noise / one.shape[-1] ** 0.5 if one.dim() else noise)
    return built


def _has_no_numbers(parameter: Tensor) -> bool:
    """Say whether a parameter holds what memory held before: NaN, or larger numbers than any."""
    return not _largest(parameter) <= _MOST


def _largest(parameter: Tensor) -> float:
    return float(parameter.detach().double().abs().max()) if parameter.numel() else 0.0
