"""Matrices that a module is built with and that show nothing: all zeros, or memory without numbers.

An output projection of zeros, as in residual branches that begin as nothing, or weights that are
never initialised hide what the input has to do with the output, and with it every convention.
"""

from typing import TypeVar

import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy

T = TypeVar("T")

_LEAST, _MOST = 1e-6, 1e4
"""Magnitudes between which the largest number of an initialised matrix lies."""


def with_numbers(built: T) -> T:
    """Give trained matrices of `built` that show nothing random numbers; return `built`.

    What is frozen stays: it may be a table. Vectors stay, too: they are weights and biases.
    """
    if not isinstance(built, nn.Module):
        return built
    source = torch.Generator().manual_seed(2)
    with torch.no_grad():
        for one in built.parameters():
            if one.requires_grad and not is_lazy(one) and _shows_nothing(one):
                noise = torch.randn(one.shape, generator=source, dtype=torch.float64)
                one.copy_(noise / one.shape[-1] ** 0.5)
    return built


def _shows_nothing(parameter: Tensor) -> bool:
    """Say whether the numbers of a matrix are all zeros, or none that an initialisation gives."""
    matrix = parameter.dim() > 1 and parameter.numel() > max(parameter.shape)
    if not (matrix and parameter.is_floating_point()):
        return False
    largest = float(parameter.detach().double().abs().max())
    return not _LEAST <= largest <= _MOST  # true of NaN, too
