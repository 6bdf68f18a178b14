"""A sixth step after the model: the loss that it is trained with.

Shapes in this file: B batch, T target length, V vocabulary.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from .model import require_size, require_token_ids

# Step 6. Loss: how far the model is from the next token.


def smoothed_targets(labels: Tensor, like: Tensor, smoothing: float) -> Tensor:
    """Return a distribution (B, T, V) for each label (B, T), in the shape and dtype of `like`.

    The label has 1 - smoothing, and the rest is spread evenly over the other tokens.
    """
    others = torch.full_like(like, smoothing / (like.size(-1) - 1))
    return others.scatter(-1, labels.unsqueeze(-1), 1.0 - smoothing)


class SmoothedCrossEntropy(nn.Module):
    """Compare logits with smoothed labels, and take the mean over the labels that are no padding.

    The smoothing goes to every token but the label, the padding token included.
    """

    def __init__(self, vocab_size: int, pad: int, smoothing: float = 0.0) -> None:
        super().__init__()
        require_size("vocab_size", vocab_size - 1)
        if not 0 <= smoothing <= 1:
            raise ValueError(f"smoothing is {smoothing}; give a share from 0 to 1")
        self.vocab_size = vocab_size
        self.pad = pad
        self.smoothing = smoothing

    def forward(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Map logits (B, T, V) and labels (B, T) to one number, 0 where all labels are padding."""
        if logits.shape[:-1] != labels.shape:
            raise ValueError(
                f"logits {tuple(logits.shape)} and labels {tuple(labels.shape)} do not match"
            )
        require_token_ids(labels, self.vocab_size)
        # 1. From logits to log-probabilities.
        log_probs = torch.log_softmax(logits, dim=-1)
        # 2. One distribution per label.
        targets = smoothed_targets(labels, log_probs.detach(), self.smoothing)
        # 3. The cross-entropy at every step.
        per_token = -(targets * log_probs).sum(dim=-1)
        # 4. Padding counts for nothing, neither in the sum nor in the number of tokens.
        real = labels != self.pad
        return per_token.masked_fill(~real, 0.0).sum() / real.sum().clamp(min=1)
