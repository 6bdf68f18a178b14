"""Faults in the causal mask."""

import math

import torch
from torch import Tensor

from attentest.faults.fault import fault
from attentest.faults.reference_models import Device, Hooks


@fault("masks.causal-transposed", "causal-keeps-past", seam="causal_mask", origin="B014")
def causal_transposed(self: Hooks, length: int, device: Device = None) -> Tensor:
    """The upper triangle is kept.

    A position sees the present and the future only: low loss, nonsense when generating.
    """
    return self.correct.causal_mask(length, device).transpose(-2, -1)


@fault("masks.causal-inverted", "causal-keeps-past", seam="causal_mask", origin="B002")
def causal_inverted(self: Hooks, length: int, device: Device = None) -> Tensor:
    """True stands where a key is blocked, above the diagonal.

    Each position sees only the future, and the last one nothing.
    """
    return ~self.correct.causal_mask(length, device)


@fault("masks.causal-band", "causal-keeps-past", seam="causal_mask")
def causal_band(self: Hooks, length: int, device: Device = None) -> Tensor:
    """Only the last few keys are kept, as in an attention with a window.

    Long sentences lose their beginning; short ones do not show it.
    """
    return self.correct.causal_mask(length, device).triu(-7)


@fault("masks.causal-first-key-hidden", "causal-keeps-past", seam="causal_mask")
def causal_first_key_hidden(self: Hooks, length: int, device: Device = None) -> Tensor:
    """The token that starts a sentence is hidden from all but itself.

    What the decoder stores at its first position is never read.
    """
    mask = self.correct.causal_mask(length, device).clone()
    mask[..., 1:, 0] = False
    return mask


@fault("masks.causal-diagonal-hidden", "causal-keeps-diagonal", seam="causal_mask", origin="B015")
def causal_diagonal_hidden(self: Hooks, length: int, device: Device = None) -> Tensor:
    """The diagonal is blocked with what lies above it.

    A token cannot see itself, and the first query has no key: NaN or a mean.
    """
    return self.correct.causal_mask(length, device).tril(-1)


@fault(
    "masks.causal-diagonal-hidden-but-first",
    "causal-keeps-diagonal",
    seam="causal_mask",
    origin="B015",
)
def causal_diagonal_hidden_but_first(self: Hooks, length: int, device: Device = None) -> Tensor:
    """The diagonal is blocked, and the first row patched to get rid of the NaN.

    No token but the first sees itself.
    """
    mask = self.correct.causal_mask(length, device).tril(-1)
    mask[..., 0, 0] = True
    return mask


@fault("masks.causal-one-too-far", "causal-blocks-future", seam="causal_mask", origin="B016")
def causal_one_too_far(self: Hooks, length: int, device: Device = None) -> Tensor:
    """The triangle is one diagonal too large.

    Each position reads its own label: a loss near 0, and generation fails.
    """
    return torch.ones(1, 1, length, length, dtype=torch.bool, device=device).tril(1)


@fault("masks.causal-missing", "causal-blocks-future", seam="causal_mask", origin="B110")
def causal_missing(self: Hooks, length: int, device: Device = None) -> Tensor:
    """Nothing is hidden. The decoder reads the words that it has to predict."""
    return torch.ones(1, 1, length, length, dtype=torch.bool, device=device)


@fault("masks.causal-in-blocks", "causal-blocks-future", seam="causal_mask")
def causal_in_blocks(self: Hooks, length: int, device: Device = None) -> Tensor:
    """Positions are compared after a division, so that neighbours form blocks.

    Within a block every position sees the next ones.
    """
    block = torch.arange(length, device=device) // 2
    return (block[:, None] >= block)[None, None]


@fault("masks.causal-additive", "causal-shape", seam="causal_mask", origin="B003")
def causal_additive(self: Hooks, length: int, device: Device = None) -> Tensor:
    """The mask holds 0 where a key is kept and minus infinity above.

    Read as a boolean it keeps exactly what should be hidden.
    """
    return torch.full((1, 1, length, length), -math.inf, device=device).triu(1)


@fault("masks.causal-plus-infinity", "causal-shape", seam="causal_mask", origin="systems.md C")
def causal_plus_infinity(self: Hooks, length: int, device: Device = None) -> Tensor:
    """The mask holds 0 where a key is kept and plus infinity above.

    Added to the scores it makes everything NaN.
    """
    return torch.full((1, 1, length, length), math.inf, device=device).triu(1)


@fault("masks.causal-as-numbers", "causal-shape", seam="causal_mask", origin="B003")
def causal_as_numbers(self: Hooks, length: int, device: Device = None) -> Tensor:
    """The mask holds ones and zeros.

    Handed on as numbers to add, it is a bump of 1 and hides nothing.
    """
    return self.correct.causal_mask(length, device).float()


@fault("masks.causal-without-axes", "causal-shape", seam="causal_mask", origin="systems.md B")
def causal_without_axes(self: Hooks, length: int, device: Device = None) -> Tensor:
    """The mask is (T, T), without the axes of batch and heads.

    Code that takes the length from the first axis, or indexes samples, reads it wrongly.
    """
    return self.correct.causal_mask(length, device)[0, 0]


@fault("masks.causal-kept-from-first-call", "causal-any-order", seam="causal_mask", kind="state")
def causal_kept_from_first_call(self: Hooks, length: int, device: Device = None) -> Tensor:
    """The mask of the first call is handed out for ever.

    The second batch, of another length, fails or is broadcast.
    """
    kept: Tensor = self.memory.setdefault("causal", self.correct.causal_mask(length, device))
    return kept


@fault("masks.causal-kept-while-it-fits", "causal-any-order", seam="causal_mask", kind="state")
def causal_kept_while_it_fits(self: Hooks, length: int, device: Device = None) -> Tensor:
    """The longest mask is kept, and its last rows are cut out for shorter sentences.

    A short sentence after a long one sees its future.
    """
    kept: Tensor = self.memory.get("causal", torch.zeros(0))
    if kept.shape[-1] < length:
        kept = self.memory["causal"] = self.correct.causal_mask(length, device)
    return kept[..., kept.shape[-1] - length :, :length]


@fault("masks.causal-handed-out-to-write", "causal-any-order", seam="causal_mask", kind="state")
def causal_handed_out_to_write(self: Hooks, length: int, device: Device = None) -> Tensor:
    """Masks are kept by length, and the caller is given the kept one itself.

    What one caller writes into its mask, every later call of that length receives.
    """
    fresh = self.correct.causal_mask(length, device)
    kept: Tensor = self.memory.setdefault(f"causal {length}", fresh)
    return kept
