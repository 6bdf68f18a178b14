"""Attention with names that do not show the roles of the arguments."""

import math

from torch import Tensor


def mix(a: Tensor, b: Tensor, c: Tensor, keep: Tensor | None = None) -> Tensor:
    """Mix c with weights computed from a and b."""
    fit = a @ b.mT / math.sqrt(a.size(-1))
    if keep is not None:
        fit = fit.masked_fill(~keep, -math.inf)
    return fit.softmax(-1) @ c
