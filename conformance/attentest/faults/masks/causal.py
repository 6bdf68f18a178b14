"""Faults in the causal mask."""

# ruff: noqa: F811
# mypy: disable-error-code="no-redef"

import math

import torch
from torch import Tensor

from attentest.faults.fault import fault
from attentest.specimens import Seams

Device = torch.device | None


@fault(
    "masks.causal-transposed",
    clause="masks.causal-keeps-past",
    origin="B014",
    wrong="The upper triangle is kept.",
    effect="A position sees the present and the future only: low loss, nonsense when generating.",
)
def causal_mask(self: Seams, length: int, device: Device = None) -> Tensor:
    return self.sound.causal_mask(length, device).transpose(-2, -1)


@fault(
    "masks.causal-inverted",
    clause="masks.causal-keeps-past",
    origin="B002",
    wrong="True stands where a key is blocked, above the diagonal.",
    effect="Each position sees only the future, and the last one nothing.",
)
def causal_mask(self: Seams, length: int, device: Device = None) -> Tensor:
    return ~self.sound.causal_mask(length, device)


@fault(
    "masks.causal-band",
    clause="masks.causal-keeps-past",
    wrong="Only the last few keys are kept, as in an attention with a window.",
    effect="Long sentences lose their beginning; short ones do not show it.",
)
def causal_mask(self: Seams, length: int, device: Device = None) -> Tensor:
    return self.sound.causal_mask(length, device).triu(-7)


@fault(
    "masks.causal-first-key-hidden",
    clause="masks.causal-keeps-past",
    wrong="The token that starts a sentence is hidden from all but itself.",
    effect="What the decoder stores at its first position is never read.",
)
def causal_mask(self: Seams, length: int, device: Device = None) -> Tensor:
    mask = self.sound.causal_mask(length, device).clone()
    mask[..., 1:, 0] = False
    return mask


@fault(
    "masks.causal-diagonal-hidden",
    clause="masks.causal-keeps-diagonal",
    origin="B015",
    wrong="The diagonal is blocked with what lies above it.",
    effect="A token cannot see itself, and the first query has no key: NaN or a mean.",
)
def causal_mask(self: Seams, length: int, device: Device = None) -> Tensor:
    return self.sound.causal_mask(length, device).tril(-1)


@fault(
    "masks.causal-diagonal-hidden-but-first",
    clause="masks.causal-keeps-diagonal",
    origin="B015",
    wrong="The diagonal is blocked, and the first row patched to get rid of the NaN.",
    effect="No token but the first sees itself.",
)
def causal_mask(self: Seams, length: int, device: Device = None) -> Tensor:
    mask = self.sound.causal_mask(length, device).tril(-1)
    mask[..., 0, 0] = True
    return mask


@fault(
    "masks.causal-one-too-far",
    clause="masks.causal-blocks-future",
    origin="B016",
    wrong="The triangle is one diagonal too large.",
    effect="Each position reads its own label: a loss near 0, and generation fails.",
)
def causal_mask(self: Seams, length: int, device: Device = None) -> Tensor:
    return torch.ones(1, 1, length, length, dtype=torch.bool, device=device).tril(1)


@fault(
    "masks.causal-missing",
    clause="masks.causal-blocks-future",
    origin="B110",
    wrong="Nothing is hidden.",
    effect="The decoder reads the words that it has to predict.",
)
def causal_mask(self: Seams, length: int, device: Device = None) -> Tensor:
    return torch.ones(1, 1, length, length, dtype=torch.bool, device=device)


@fault(
    "masks.causal-in-blocks",
    clause="masks.causal-blocks-future",
    wrong="Positions are compared after a division, so that neighbours form blocks.",
    effect="Within a block every position sees the next ones.",
)
def causal_mask(self: Seams, length: int, device: Device = None) -> Tensor:
    block = torch.arange(length, device=device) // 2
    return (block[:, None] >= block)[None, None]


@fault(
    "masks.causal-additive",
    clause="masks.causal-shape",
    origin="B003",
    wrong="The mask holds 0 where a key is kept and minus infinity above.",
    effect="Read as a boolean it keeps exactly what should be hidden.",
)
def causal_mask(self: Seams, length: int, device: Device = None) -> Tensor:
    return torch.full((1, 1, length, length), -math.inf, device=device).triu(1)


@fault(
    "masks.causal-plus-infinity",
    clause="masks.causal-shape",
    origin="systems.md C",
    wrong="The mask holds 0 where a key is kept and plus infinity above.",
    effect="Added to the scores it makes everything NaN.",
)
def causal_mask(self: Seams, length: int, device: Device = None) -> Tensor:
    return torch.full((1, 1, length, length), math.inf, device=device).triu(1)


@fault(
    "masks.causal-as-numbers",
    clause="masks.causal-shape",
    origin="B003",
    wrong="The mask holds ones and zeros.",
    effect="Handed on as numbers to add, it is a bump of 1 and hides nothing.",
)
def causal_mask(self: Seams, length: int, device: Device = None) -> Tensor:
    return self.sound.causal_mask(length, device).float()


@fault(
    "masks.causal-without-axes",
    clause="masks.causal-shape",
    origin="systems.md B",
    wrong="The mask is (T, T), without the axes of batch and heads.",
    effect="Code that takes the length from the first axis, or indexes samples, reads it wrongly.",
)
def causal_mask(self: Seams, length: int, device: Device = None) -> Tensor:
    return self.sound.causal_mask(length, device)[0, 0]


@fault(
    "masks.causal-kept-from-first-call",
    clause="masks.causal-any-order",
    wrong="The mask of the first call is handed out for ever.",
    effect="The second batch, of another length, fails or is broadcast.",
    kind="state",
)
def causal_mask(self: Seams, length: int, device: Device = None) -> Tensor:
    kept: Tensor = self.memory.setdefault("causal", self.sound.causal_mask(length, device))
    return kept


@fault(
    "masks.causal-kept-while-it-fits",
    clause="masks.causal-any-order",
    wrong="The longest mask is kept, and its last rows are cut out for shorter sentences.",
    effect="A short sentence after a long one sees its future.",
    kind="state",
)
def causal_mask(self: Seams, length: int, device: Device = None) -> Tensor:
    kept: Tensor = self.memory.get("causal", torch.zeros(0))
    if kept.shape[-1] < length:
        kept = self.memory["causal"] = self.sound.causal_mask(length, device)
    return kept[..., kept.shape[-1] - length :, :length]


@fault(
    "masks.causal-handed-out-to-write",
    clause="masks.causal-any-order",
    wrong="Masks are kept by length, and the caller is given the kept one itself.",
    effect="What one caller writes into its mask, every later call of that length receives.",
    kind="state",
)
def causal_mask(self: Seams, length: int, device: Device = None) -> Tensor:
    fresh = self.sound.causal_mask(length, device)
    kept: Tensor = self.memory.setdefault(f"causal {length}", fresh)
    return kept
