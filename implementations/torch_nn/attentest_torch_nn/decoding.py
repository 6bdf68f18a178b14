"""Decoding with a translation model: greedy, beam search, and the distribution to sample from.

The library has none of them. A model encodes a source with `encode(src)`, and `decode(tgt, memory,
hide_memory)` scores every next token; see `model.py`.

Shapes: B batch, N beams, S source length, T target length, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from .model import Transformer, hide_padding


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """Switch to evaluation mode without gradients, and back to the mode that it was in."""
    training = model.training
    model.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        model.train(training)


def greedy_search(model: Transformer, src: Tensor, tgt: Tensor, end: int, length: int) -> Tensor:
    """Continue tgt (B, T) to (B, length) by the best token; padding follows an `end`."""
    with evaluating(model):
        memory, hide = model.encode(src), hide_padding(src, model.src_pad)
        going = torch.ones(len(tgt), dtype=torch.bool, device=tgt.device)
        for _ in range(length - tgt.size(1)):
            best = model.decode(tgt, memory, hide)[:, -1].argmax(-1)
            best = torch.where(going, best, model.tgt_pad)
            tgt = torch.cat((tgt, best[:, None]), dim=1)
            going = going & (best != end)
    return tgt


def beam_search(
    model: Transformer,
    src: Tensor,
    tgt: Tensor,
    end: int,
    length: int,
    beams: int = 4,
    alpha: float = 0.6,
) -> tuple[Tensor, Tensor]:
    """Return the best continuations (B, N, length) of tgt (B, T), the best first, and their scores.

    A finished hypothesis keeps its place in the beam while its score (B, N) is among the best:
    the sum of log-probabilities over ((5 + n) / 6)^alpha, for n new tokens, the end included
    (Vaswani et al. 2017, 6.1; Wu et al. 2016, 7).
    """
    batch, given = tgt.shape
    with evaluating(model):
        memory, hide = model.encode(src), hide_padding(src, model.src_pad)
        memory, hide = (one.repeat_interleave(beams, dim=0) for one in (memory, hide))
        tokens = tgt[:, None].repeat(1, beams, 1)
        # All beams begin alike: all but the first have to lose, or they would stay alike.
        sums = torch.zeros(batch, beams, dtype=memory.dtype, device=tgt.device)
        sums[:, 1:] = -torch.inf
        counts = torch.zeros(batch, beams, dtype=torch.long, device=tgt.device)
        done = torch.zeros(batch, beams, dtype=torch.bool, device=tgt.device)
        for _ in range(length - given):
            logits = model.decode(tokens.flatten(0, 1), memory, hide)[:, -1]
            steps = logits.log_softmax(-1).view(batch, beams, -1)
            # Nothing but padding follows an end, and it costs nothing.
            steps = steps.masked_fill(done[..., None], -torch.inf)
            steps[..., model.tgt_pad] = steps[..., model.tgt_pad].masked_fill(done, 0.0)
            counts = counts + (~done).long()
            candidates = sums[..., None] + steps
            scores = candidates / penalty(counts, alpha).to(candidates)[..., None]
            best = scores.flatten(1).topk(beams).indices
            beam, token = best // logits.size(-1), best % logits.size(-1)
            sums = candidates.flatten(1).gather(1, best)
            counts, done = counts.gather(1, beam), done.gather(1, beam)
            tokens = tokens.gather(1, beam[..., None].expand(-1, -1, tokens.size(2)))
            tokens = torch.cat((tokens, token[..., None]), dim=2)
            done = done | (token == end)
        return tokens, sums / penalty(counts, alpha).to(sums)


def penalty(counts: Tensor, alpha: float) -> Tensor:
    """Return ((5 + n) / 6)^alpha for every count n."""
    return ((5 + counts.double()) / 6) ** alpha


def next_token_probabilities(
    logits: Tensor, temperature: float = 1.0, top_k: int = 0, top_p: float = 1.0
) -> Tensor:
    """Map logits (B, V) to the probabilities (B, V) to draw the next token by.

    The temperature comes first, then the `top_k` best tokens are kept (0 keeps all), then of their
    probabilities the fewest that sum to `top_p`. Raises ValueError for a temperature that is not
    above 0: use greedy search there.
    """
    if temperature <= 0:
        raise ValueError(f"temperature is {temperature}; give a number above 0")
    logits = logits / temperature
    if 0 < top_k < logits.size(-1):
        least = logits.topk(top_k).values[:, -1:]
        logits = logits.masked_fill(logits < least, -torch.inf)
    if top_p < 1:
        sorted_logits, order = logits.sort(descending=True)
        probabilities = sorted_logits.softmax(-1)
        surplus = probabilities.cumsum(-1) - probabilities >= top_p
        surplus[:, 0] = False
        logits = logits.masked_fill(surplus.scatter(1, order, surplus), -torch.inf)
    return logits.softmax(-1)
