"""A scripted model: a table of scores in the place of a network, so that decoding is exact.

What it answers for a prefix depends on the sequence in the batch, on the last token of the prefix
and on the number of its tokens. A recipe connects its methods to the names that a decoding function
calls.
"""

from typing import Self

import torch
from torch import Tensor, nn

from attentest_spec.contract import Unsupported
from attentest_spec.sizes import Sizes

WIDTH = 3
"""The width of the memory; its columns hold the number of the sequence."""


class Script(nn.Module):
    """A model of the sizes' vocabulary and pad id whose answers are in a table.

    In training mode it answers with the scores of the vocabulary in reverse, in the place of
    dropout. `source` (B, 1) are source tokens that stand for the sequences of the table.
    """

    scores: Tensor
    source: Tensor

    def __init__(self, sizes: Sizes) -> None:
        """Begin without a table; see :meth:`play`."""
        super().__init__()
        self.pad = sizes.target_pad
        self.end = sizes.end
        self.start = sizes.start
        self.source_pad = sizes.source_pad
        self.register_buffer("scores", torch.zeros(0), persistent=False)
        self.register_buffer("source", torch.zeros(0, 1, dtype=torch.long), persistent=False)

    def play(self, scores: Tensor) -> Self:
        """Take the table of shape (B, L, V, V): the scores after a position and a token."""
        numbers = torch.arange(len(scores), device=scores.device)
        self.scores = scores
        self.source = (numbers + (numbers >= self.source_pad))[:, None]
        return self

    def memory(self, source: Tensor) -> Tensor:
        """Return the memory, of shape (B, 1, D), of source tokens of shape (B, 1)."""
        numbers = source - (source > self.source_pad).long()
        return numbers[..., None].expand(-1, -1, WIDTH).to(self.scores.dtype)

    def answer(self, target: Tensor, memory: Tensor) -> Tensor:
        """Return the scores, of shape (B, T, V), after every token of a target of shape (B, T).

        Padding counts as no token; the answer at a padded position is reversed.
        """
        sequence = memory[:, 0, 0].round().long()[:, None].expand_as(target)
        real = target != self.pad
        position = (real.cumsum(dim=1) - 1).clamp(min=0)
        places = torch.arange(target.shape[1], device=target.device).expand_as(target)
        last = target.gather(1, torch.where(real, places, 0).cummax(dim=1).values)
        found = self.scores[sequence, position, last]
        reversed_at = ~real if not self.training else real
        return torch.where(reversed_at[..., None], found.flip(-1), found)

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        """Return the scores, of shape (B, T, V), for tokens of shapes (B, 1) and (B, T)."""
        return self.answer(target, self.memory(source))

    def unpadded(self, begin: Tensor, most: int | None = None) -> Tensor:
        """Return the given tokens, of shape (B, P), for code that takes no padding among them.

        Raises Unsupported where there is some, and for more columns than `most`.
        """
        if (begin == self.pad).any():
            raise Unsupported("it takes no padding before its first new token")
        if most is not None and begin.shape[1] > most:
            raise Unsupported(f"it takes {most} given token(s), and {begin.shape[1]} were given")
        return begin

    def filled(self, tokens: Tensor, length: int) -> Tensor:
        """Return tokens, of shape (B, T), with padding up to the column `length`."""
        return nn.functional.pad(tokens, (0, length - tokens.shape[1]), value=self.pad)
