"""Faults that show in what is long, deep, wide or many, and in nothing small."""

from torch import Tensor

from attentest.faults.fault import fault
from attentest.faults.reference_models import Hooks


@fault("layer_norm.wide-rows-unbiased", "formula", seam="variance")
def wide_rows_unbiased(self: Hooks, centred: Tensor) -> Tensor:
    """Rows wider than 16 are divided by the sample deviation.

    Small tests agree, and real widths are off in the third digit.
    """
    width = centred.shape[-1]
    found = self.correct.variance(centred)
    return found * width / (width - 1) if width > 16 else found
