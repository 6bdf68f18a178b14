"""Faults that only large inputs show: long, deep, wide or many."""

import torch
from torch import Tensor

from attentest.faults.fault import fault
from attentest.faults.reference_models import Hooks


@fault("feed_forward.activation-of-64-columns", "formula", seam="activation")
def activation_of_64_columns(self: Hooks, x: Tensor) -> Tensor:
    """Columns of the inner layer from the 64th on are not activated. Most of it is linear."""
    return torch.cat((self.correct.activation(x[..., :64]), x[..., 64:]), dim=-1)
