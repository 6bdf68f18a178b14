"""Two steps after the model: the loss that it is trained with, and the batches.

Shapes in this file: B batch, T target length, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from .model import make_no_peek_mask, make_pad_mask, require_size, require_token_ids

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


# Step 7. Batch: what the decoder reads, what it has to say, and the masks of both sides.


def teacher_forcing(
    src: Tensor, trg: Tensor, src_pad: int, trg_pad: int
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Return decoder input, labels, source mask, target mask and the number of real labels.

    Maps src (B, S) and trg (B, T + 1) to (B, T), (B, T), (B, 1, 1, S), (B, 1, T, T) and ().
    """
    decoder_input = trg[:, :-1]
    labels = trg[:, 1:]
    src_mask = make_pad_mask(src, src_pad)
    trg_mask = make_pad_mask(decoder_input, trg_pad) & make_no_peek_mask(
        decoder_input.size(1), decoder_input.device
    )
    return decoder_input, labels, src_mask, trg_mask, (labels != trg_pad).sum()


def pad_sentences(
    sentences: Sequence[Tensor], start: int, end: int, pad: int
) -> tuple[Tensor, Tensor]:
    """Put a start and an end around each sentence, and pad on the right: tokens, mask (B, L)."""
    longest = max(len(sentence) for sentence in sentences) + 2
    tokens = torch.full((len(sentences), longest), pad)
    real = torch.zeros(len(sentences), longest, dtype=torch.bool)
    for row, sentence in enumerate(sentences):
        length = len(sentence) + 2
        tokens[row, 0] = start
        tokens[row, 1 : length - 1] = sentence
        tokens[row, length - 1] = end
        real[row, :length] = True
    return tokens, real
