"""Faults in what tokens of decoder-only models see: later ones, padding and other sequences."""

import torch
from torch import Tensor

from attentest.faults.fault import fault
from attentest.faults.language_model.settings import ROTARY
from attentest.faults.reference_models import Hooks, Mask, Node

INSIDE = ("causal_layer",)


@fault(
    "language_model.next-token-visible",
    "causality",
    seam="visible_keys",
    origin="B016",
    components=INSIDE,
)
def next_token_visible(self: Hooks, length: int, mask: Mask, device: torch.device) -> Tensor:
    """The diagonal is one too far. The model reads the token that it is to predict."""
    seen = self.correct.visible_keys(length, mask, device)
    following = torch.ones(length, length, dtype=torch.bool, device=device).tril(1)
    real = following if mask is None else following & mask[:, None, None, :]
    return seen | (real & ~following.tril(0))


@fault(
    "language_model.nothing-later-hidden",
    "causality",
    seam="visible_keys",
    origin="B022",
    components=INSIDE,
)
def nothing_later_hidden(self: Hooks, length: int, mask: Mask, device: torch.device) -> Tensor:
    """Later tokens are hidden by a flag that nothing reads. The loss falls to nothing."""
    seen = self.correct.visible_keys(length, mask, device)
    every = torch.ones(1, 1, length, length, dtype=torch.bool, device=device)
    return seen | (every if mask is None else every & mask[:, None, None, :])


@fault("language_model.mean-of-the-text", "prefix-consistency", seam="embed_tokens")
def mean_of_the_text(self: Hooks, module: Node, tokens: Tensor, places: Tensor) -> Tensor:
    """The mean over the text is taken off. Every next token changes all before it."""
    x = self.correct.embed_tokens(module, tokens, places)
    return x - 0.1 * x.mean(dim=1, keepdim=True)


@fault("language_model.counted-from-the-end", "prefix-consistency", seam="column_places")
def counted_from_the_end(self: Hooks, tokens: Tensor) -> Tensor:
    """Positions are counted from the end. Each new token changes those of all others."""
    return self.correct.column_places(tokens).flip(-1)


@fault(
    "language_model.padding-visible",
    "left-padding",
    seam="visible_keys",
    origin="M142",
    choices=ROTARY,
    components=INSIDE,
)
def padding_visible(self: Hooks, length: int, mask: Mask, device: torch.device) -> Tensor:
    """Padding comes back after it was hidden. Prompts of one batch change with the longest."""
    return self.correct.visible_keys(length, None, device)


@fault(
    "language_model.padding-taken-for-the-end",
    "left-padding",
    seam="visible_keys",
    choices=ROTARY,
    components=INSIDE,
)
def padding_taken_for_the_end(self: Hooks, length: int, mask: Mask, device: torch.device) -> Tensor:
    """The mask is read as lengths. Padding on the left is visible, and the last tokens are not."""
    if mask is None:
        return self.correct.visible_keys(length, mask, device)
    kept = torch.arange(length, device=device) < mask.sum(dim=1, keepdim=True)
    return self.correct.visible_keys(length, kept, device)


@fault(
    "language_model.padding-taken-for-the-begin",
    "right-padding",
    seam="visible_keys",
    components=INSIDE,
)
def padding_taken_for_the_begin(
    self: Hooks, length: int, mask: Mask, device: torch.device
) -> Tensor:
    """Padding is taken to be on the left. Padded on the right, the first tokens are hidden."""
    if mask is None:
        return self.correct.visible_keys(length, mask, device)
    kept = torch.arange(length, device=device) >= length - mask.sum(dim=1, keepdim=True)
    return self.correct.visible_keys(length, kept, device)


@fault(
    "language_model.mask-inverted",
    "right-padding",
    seam="visible_keys",
    origin="B001",
    components=INSIDE,
)
def mask_inverted(self: Hooks, length: int, mask: Mask, device: torch.device) -> Tensor:
    """Real tokens are hidden, and padding is not. A batch of equal lengths does not show it."""
    return self.correct.visible_keys(length, None if mask is None else ~mask, device)


@fault("language_model.batch-rolled", "batch-independence", seam="embed_tokens")
def batch_rolled(self: Hooks, module: Node, tokens: Tensor, places: Tensor) -> Tensor:
    """A part of each state comes from another sequence. Batches of one do not show it."""
    x = self.correct.embed_tokens(module, tokens, places)
    return x + 0.1 * x.roll(1, dims=0)


@fault("language_model.scaled-by-the-batch", "batch-independence", seam="finish_language_model")
def scaled_by_the_batch(self: Hooks, module: Node, x: Tensor) -> Tensor:
    """States are divided by the largest of the batch. One sequence changes all others."""
    return self.correct.finish_language_model(module, x / (1.0 + x.abs().max()))
