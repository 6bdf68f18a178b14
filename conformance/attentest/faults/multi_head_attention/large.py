"""Faults that show in what is long, deep, wide or many, and in nothing small."""

from torch import Tensor

from attentest.faults.fault import fault
from attentest.faults.reference_models import Hooks


@fault("multi_head_attention.many-heads-in-reverse", "formula", seam="merge_heads")
def many_heads_in_reverse(self: Hooks, x: Tensor) -> Tensor:
    """From four heads on they are merged in reverse order.

    Tests with two heads pass; no checkpoint with eight fits.
    """
    return self.correct.merge_heads(x.flip(1) if x.shape[1] >= 4 else x)
