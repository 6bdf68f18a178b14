"""Faults that show in what is long, deep, wide or many, and in nothing small."""

# mypy: disable-error-code="no-redef"

import torch
from torch import Tensor

from attentest.faults.fault import fault
from attentest.specimens import Seams


@fault(
    "masks.causal-up-to-512",
    clause="masks.causal-any-order",
    wrong="Rows from the 512th on hide nothing.",
    effect="Long targets see their own future.",
)
def causal_mask(self: Seams, length: int, device: torch.device | None = None) -> Tensor:
    mask = self.sound.causal_mask(length, device).clone()
    mask[..., 512:, :] = True
    return mask


@fault(
    "masks.padding-from-first-pad-in-large-batches",
    clause="masks.padding-keeps-exactly-real-tokens",
    wrong="In batches of four and more everything after the first pad is hidden.",
    effect="Words after a pad vanish as soon as the batch grows.",
)
def padding_mask(self: Seams, tokens: Tensor, pad: int) -> Tensor:
    real = self.sound.padding_mask(tokens, pad)
    return real.cumprod(-1).bool() if len(tokens) > 3 else real
