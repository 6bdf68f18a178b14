"""Faults that only large inputs show: long, deep, wide or many."""

from torch import Tensor

from attentest.faults.fault import fault
from attentest.faults.reference_models import Device, Hooks


@fault("masks.causal-up-to-512", "causal-any-order", seam="causal_mask")
def causal_up_to_512(self: Hooks, length: int, device: Device = None) -> Tensor:
    """Rows from the 512th on hide nothing. Long targets see their own future."""
    mask = self.correct.causal_mask(length, device).clone()
    mask[..., 512:, :] = True
    return mask


@fault(
    "masks.padding-from-first-pad-in-large-batches",
    "padding-keeps-exactly-real-tokens",
    seam="padding_mask",
)
def padding_from_first_pad_in_large_batches(self: Hooks, tokens: Tensor, pad: int) -> Tensor:
    """From four samples on, everything after the first padding token is hidden.

    Tokens are lost in large batches.
    """
    real = self.correct.padding_mask(tokens, pad)
    return real.cumprod(-1).bool() if len(tokens) > 3 else real


@fault("masks.padding-up-to-512", "padding-keeps-exactly-real-tokens", seam="padding_mask")
def padding_up_to_512(self: Hooks, tokens: Tensor, pad: int) -> Tensor:
    """Keys from the 512th on are all kept. Padding at the end of long sequences is read."""
    mask = self.correct.padding_mask(tokens, pad).clone()
    mask[..., 512:] = True
    return mask
