"""The tutorial's training parts: batches, the copy task, label smoothing, the learning rate.

Shapes: B batch, S source length, T target length, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import torch
from torch import Tensor, nn

from .model import check_sizes, make_src_mask, make_std_mask


class Batch:
    """Hold a batch of sentence pairs with its masks, the target shifted by one for teacher forcing.

    `trg` is what the decoder reads (the last token dropped), `trg_y` what it must say (the first
    token dropped), `ntokens` how many of those are no padding. The source has the pad id of the
    target unless it is given another one.
    """

    def __init__(self, src: Tensor, trg: Tensor, pad: int = 0, src_pad: int | None = None) -> None:
        self.src = src
        self.src_mask = make_src_mask(src, pad if src_pad is None else src_pad)
        self.trg = trg[:, :-1]
        self.trg_y = trg[:, 1:]
        self.trg_mask = make_std_mask(self.trg, pad)
        self.ntokens = int((self.trg_y != pad).sum())


def collate_batch(
    sentences: Sequence[Tensor], bos: int = 1, eos: int = 2, pad: int = 0
) -> tuple[Tensor, Tensor]:
    """Return sentences with their ends and padding on the right (B, L), and where they are.

    The mask (B, L) goes by position, so that an end token that is the pad id is no padding.
    """
    ends = torch.tensor([bos]), torch.tensor([eos])
    rows = [torch.cat((ends[0], sentence, ends[1])) for sentence in sentences]
    longest = max(map(len, rows))
    padded = [torch.nn.functional.pad(row, (0, longest - len(row)), value=pad) for row in rows]
    where = torch.arange(longest) < torch.tensor([len(row) for row in rows]).unsqueeze(1)
    return torch.stack(padded), where


def data_gen(
    vocab: int = 11,
    batch: int = 30,
    nbatches: int = 20,
    length: int = 10,
    generator: torch.Generator | None = None,
) -> Iterator[Batch]:
    """Yield random batches of the copy task: the target is the source, and begins with a 1.

    Tokens lie in [1, V), as 0 is the padding. Raises ValueError for sizes that leave no task.
    """
    check_sizes(batch=batch, nbatches=nbatches)
    if vocab < 2 or length < 2:
        raise ValueError(f"vocab is {vocab} and length {length}; a copy task takes 2 of each")
    for _ in range(nbatches):
        data = torch.randint(1, vocab, (batch, length), generator=generator)
        data[:, 0] = 1
        yield Batch(data, data.clone(), pad=0)


def rate(step: int, model_size: int, factor: float = 1.0, warmup: int = 4000) -> float:
    """Return the learning rate of a step, counted from 1: linear warm-up, then step^-0.5.

    Vaswani et al. 2017, 5.3.
    """
    check_sizes(step=step, model_size=model_size, warmup=warmup)
    return float(factor * model_size**-0.5 * min(step**-0.5, step * warmup**-1.5))


def make_optimizer(parameters: Iterable[nn.Parameter], lr: float = 1.0) -> torch.optim.Adam:
    """Return Adam with the constants of Vaswani et al. 2017, 5.3; the rate is set at each step."""
    return torch.optim.Adam(parameters, lr=lr, betas=(0.9, 0.98), eps=1e-9)


class LabelSmoothing(nn.Module):
    """Return the divergence from a target that gives `smoothing` of its mass to other words.

    Padding is neither a word to predict nor a share to give away, so the rest is split among
    V - 2 words, and rows whose target is padding count nothing. Vaswani et al. 2017, 5.4.
    """

    def __init__(self, size: int, padding_idx: int, smoothing: float = 0.1) -> None:
        super().__init__()
        if size < 3:
            raise ValueError(f"size is {size}; smoothing takes a vocabulary of at least 3")
        if not 0 <= smoothing < 1:
            raise ValueError(f"smoothing is {smoothing}; give a share of at least 0 and below 1")
        self.size = size
        self.padding_idx = padding_idx
        self.smoothing = smoothing

    def target(self, words: Tensor, like: Tensor) -> Tensor:
        """Return the smoothed distributions (N, V) of target words (N,), in the dtype of `like`."""
        spread = torch.full_like(like, self.smoothing / (self.size - 2))
        spread = spread.scatter(1, words.unsqueeze(1), 1.0 - self.smoothing)
        columns = torch.arange(self.size, device=words.device) == self.padding_idx
        return spread.masked_fill(columns | (words == self.padding_idx).unsqueeze(1), 0.0)

    def forward(self, log_probabilities: Tensor, words: Tensor) -> Tensor:
        """Map log-probabilities (N, V) and target words (N,) to the summed divergence.

        Raises ValueError for other shapes, IndexError for a word outside the vocabulary.
        """
        if log_probabilities.shape != (*words.shape, self.size):
            raise ValueError(
                f"log-probabilities {tuple(log_probabilities.shape)} do not fit "
                f"{tuple(words.shape)} words of a vocabulary of {self.size}"
            )
        outside = words[(words < 0) | (words >= self.size)]
        if outside.numel():
            raise IndexError(f"word {int(outside[0])} is outside the vocabulary of {self.size}")
        target = self.target(words, log_probabilities.detach())
        return (torch.xlogy(target, target) - target * log_probabilities).sum()
