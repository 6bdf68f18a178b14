"""Faults in the causal mask."""

import math

import torch
from torch import Tensor

from attentest.faults.fault import fault
from attentest.faults.reference_models import Device, Hooks


@fault("masks.causal-transposed", "causal-keeps-past", seam="causal_mask", origin="B014")
def causal_transposed(self: Hooks, length: int, device: Device = None) -> Tensor:
    """The upper triangle is kept. Each position sees the present and the future alone."""
    return self.correct.causal_mask(length, device).transpose(-2, -1)


@fault("masks.causal-inverted", "causal-keeps-past", seam="causal_mask", origin="B002")
def causal_inverted(self: Hooks, length: int, device: Device = None) -> Tensor:
    """True marks blocked keys, above the diagonal. Each position sees the future alone."""
    return ~self.correct.causal_mask(length, device)


@fault("masks.causal-band", "causal-keeps-past", seam="causal_mask")
def causal_band(self: Hooks, length: int, device: Device = None) -> Tensor:
    """Only the last few keys are kept, as in a window. Long sequences lose their start."""
    return self.correct.causal_mask(length, device).triu(-7)


@fault("masks.causal-first-key-hidden", "causal-keeps-past", seam="causal_mask")
def causal_first_key_hidden(self: Hooks, length: int, device: Device = None) -> Tensor:
    """The first token is hidden from all queries but its own. The start token is never read."""
    mask = self.correct.causal_mask(length, device).clone()
    mask[..., 1:, 0] = False
    return mask


@fault("masks.causal-diagonal-hidden", "causal-keeps-diagonal", seam="causal_mask", origin="B015")
def causal_diagonal_hidden(self: Hooks, length: int, device: Device = None) -> Tensor:
    """The diagonal is blocked too. No token sees itself, and the first query has no key."""
    return self.correct.causal_mask(length, device).tril(-1)


@fault(
    "masks.causal-diagonal-hidden-but-first",
    "causal-keeps-diagonal",
    seam="causal_mask",
    origin="B015",
)
def causal_diagonal_hidden_but_first(self: Hooks, length: int, device: Device = None) -> Tensor:
    """The diagonal is blocked except in the first row. No other token sees itself."""
    mask = self.correct.causal_mask(length, device).tril(-1)
    mask[..., 0, 0] = True
    return mask


@fault("masks.causal-one-too-far", "causal-blocks-future", seam="causal_mask", origin="B016")
def causal_one_too_far(self: Hooks, length: int, device: Device = None) -> Tensor:
    """The triangle has one diagonal too many. Each position reads its own label."""
    return torch.ones(1, 1, length, length, dtype=torch.bool, device=device).tril(1)


@fault("masks.causal-missing", "causal-blocks-future", seam="causal_mask", origin="B110")
def causal_missing(self: Hooks, length: int, device: Device = None) -> Tensor:
    """Nothing is hidden. The decoder reads the tokens that it has to predict."""
    return torch.ones(1, 1, length, length, dtype=torch.bool, device=device)


@fault("masks.causal-in-blocks", "causal-blocks-future", seam="causal_mask")
def causal_in_blocks(self: Hooks, length: int, device: Device = None) -> Tensor:
    """Positions are compared after a division. Within a block each one sees the next ones."""
    block = torch.arange(length, device=device) // 2
    return (block[:, None] >= block)[None, None]


@fault("masks.causal-additive", "causal-shape", seam="causal_mask", origin="B003")
def causal_additive(self: Hooks, length: int, device: Device = None) -> Tensor:
    """The mask holds 0 for kept keys and -inf above. As a boolean it keeps what it should hide."""
    return torch.full((1, 1, length, length), -math.inf, device=device).triu(1)


@fault("masks.causal-plus-infinity", "causal-shape", seam="causal_mask", origin="systems.md C")
def causal_plus_infinity(self: Hooks, length: int, device: Device = None) -> Tensor:
    """The mask holds 0 for kept keys and +inf above. Added to the scores it gives NaN."""
    return torch.full((1, 1, length, length), math.inf, device=device).triu(1)


@fault("masks.causal-as-numbers", "causal-shape", seam="causal_mask", origin="B003")
def causal_as_numbers(self: Hooks, length: int, device: Device = None) -> Tensor:
    """The mask holds ones and zeros. Added to the scores it hides nothing."""
    return self.correct.causal_mask(length, device).float()


@fault("masks.causal-without-axes", "causal-shape", seam="causal_mask", origin="systems.md B")
def causal_without_axes(self: Hooks, length: int, device: Device = None) -> Tensor:
    """The mask is (T, T), without the axes of batch and heads.

    Code that takes the length from the first axis, or indexes samples, reads it wrongly.
    """
    return self.correct.causal_mask(length, device)[0, 0]


@fault("masks.causal-kept-from-first-call", "causal-any-order", seam="causal_mask", kind="state")
def causal_kept_from_first_call(self: Hooks, length: int, device: Device = None) -> Tensor:
    """The mask of the first call is reused. A batch of another length fails or is broadcast."""
    kept: Tensor = self.memory.setdefault("causal", self.correct.causal_mask(length, device))
    return kept


@fault("masks.causal-kept-while-it-fits", "causal-any-order", seam="causal_mask", kind="state")
def causal_kept_while_it_fits(self: Hooks, length: int, device: Device = None) -> Tensor:
    """The longest mask is kept, and cut for shorter sequences from its last rows.

    A short sequence after a long one sees its future.
    """
    kept: Tensor = self.memory.get("causal", torch.zeros(0))
    if kept.shape[-1] < length:
        kept = self.memory["causal"] = self.correct.causal_mask(length, device)
    return kept[..., kept.shape[-1] - length :, :length]


@fault("masks.causal-handed-out-to-write", "causal-any-order", seam="causal_mask", kind="state")
def causal_handed_out_to_write(self: Hooks, length: int, device: Device = None) -> Tensor:
    """Masks are cached by length and returned without a copy. Callers write into the cache."""
    fresh = self.correct.causal_mask(length, device)
    kept: Tensor = self.memory.setdefault(f"causal {length}", fresh)
    return kept
