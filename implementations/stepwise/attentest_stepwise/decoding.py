"""The last step of the course: translate with a trained model, one word at a time."""

from __future__ import annotations

import torch
from torch import Tensor

from .model import Transformer, require_size

# Step 6. Greedy decoding: ask for the next word, write it down, ask again.


class GreedyDecoder:
    """Write translations word by word, always taking the word of the largest logit.

    A sentence is finished at the word `end`; `trg_pad` fills it up while others go on.
    """

    def __init__(self, model: Transformer, end: int, max_len: int) -> None:
        require_size("max_len", max_len)
        self.model = model
        self.end = end
        self.max_len = max_len

    def translate(self, src: Tensor, trg: Tensor) -> Tensor:
        """Map src (B, S) and the first words trg (B, T) to whole translations (B, max_len).

        The result is shorter where all sentences finish early.
        """
        memory = self.model.encode(src)
        src_mask = self.model.make_src_mask(src)
        finished = torch.zeros(trg.size(0), dtype=torch.bool, device=trg.device)
        while trg.size(1) < self.max_len and not finished.all():
            logits = self.model.decode(trg, memory, src_mask)
            word = logits[:, -1].argmax(dim=-1).masked_fill(finished, self.model.trg_pad)
            trg = torch.cat([trg, word.unsqueeze(1)], dim=1)
            finished = finished | (word == self.end)
        return trg
