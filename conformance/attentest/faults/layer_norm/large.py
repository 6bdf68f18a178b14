"""Faults that show in what is long, deep, wide or many, and in nothing small."""

# mypy: disable-error-code="no-redef"

from torch import Tensor

from attentest.faults.fault import fault
from attentest.specimens import Seams


@fault(
    "layer_norm.wide-rows-unbiased",
    clause="layer_norm.formula",
    wrong="Rows wider than 16 are divided by the sample deviation.",
    effect="Small tests agree, and real widths are off in the third digit.",
)
def variance(self: Seams, centred: Tensor) -> Tensor:
    width = centred.shape[-1]
    found = self.sound.variance(centred)
    return found * width / (width - 1) if width > 16 else found
