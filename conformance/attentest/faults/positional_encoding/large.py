"""Faults that show in what is long, deep, wide or many, and in nothing small."""

import torch
from torch import Tensor

from attentest.faults.fault import fault
from attentest.faults.reference_models import Hooks


@fault("positional_encoding.wide-exponent", "formula", seam="exponents")
def wide_exponent(self: Hooks, d_model: int, device: torch.device | None) -> Tensor:
    """From 65 columns on the exponent is doubled.

    Small models agree, and the real one has other positions.
    """
    return self.correct.exponents(d_model, device) * (2 if d_model > 64 else 1)
