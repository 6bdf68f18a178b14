"""Faults that only large inputs show: long, deep, wide or many."""

from torch import Tensor

from attentest.faults.fault import fault
from attentest.faults.reference_models import Hooks


@fault("layer_norm.mean-of-256-columns", "formula", seam="mean")
def mean_of_256_columns(self: Hooks, x: Tensor) -> Tensor:
    """The mean is that of the first 256 columns. Rows of wide models are not centred."""
    return self.correct.mean(x[..., :256])
