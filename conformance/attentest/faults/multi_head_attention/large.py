"""Faults that show in what is long, deep, wide or many, and in nothing small."""

# mypy: disable-error-code="no-redef"

from torch import Tensor

from attentest.faults.fault import fault
from attentest.specimens import Seams


@fault(
    "multi_head_attention.many-heads-in-reverse",
    clause="multi_head_attention.formula",
    wrong="From four heads on they are merged in reverse order.",
    effect="Tests with two heads pass; no checkpoint with eight fits.",
)
def merge_heads(self: Seams, x: Tensor) -> Tensor:
    return self.sound.merge_heads(x.flip(1) if x.shape[1] >= 4 else x)
