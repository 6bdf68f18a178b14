"""Attention and a layer that take the number of keys in the place of a mask, right and wrong."""

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn


def scores_of(query: Tensor, key: Tensor) -> Tensor:
    return query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])


def hidden(scores: Tensor, keep: Tensor) -> Tensor:
    return scores.masked_fill(~keep, -torch.inf)


def padded(query, key, value, key_lengths=None):
    """Attend to the first keys; key_lengths is (B,)."""
    scores = scores_of(query, key)
    if key_lengths is not None:
        keep = torch.arange(key.shape[-2], device=key.device) < key_lengths[:, None]
        scores = hidden(scores, keep[:, None, None])
    return scores.softmax(-1) @ value


def masked_softmax(scores: Tensor, lengths: Tensor | None) -> Tensor:
    if lengths is None:
        return scores.softmax(-1)
    shape = scores.shape
    each = lengths.repeat_interleave(shape[1]) if lengths.dim() == 1 else lengths.reshape(-1)
    rows = scores.reshape(-1, shape[-1])
    keep = torch.arange(shape[-1], device=rows.device)[None] < each[:, None]
    return rows.masked_fill(~keep, -1e6).reshape(shape).softmax(-1)


def ragged(queries, keys, values, valid_lens=None):
    """Attend to the first keys; tensors are (B, L, E), valid_lens is (B,) or (B, Q)."""
    scores = torch.bmm(queries, keys.transpose(1, 2)) / math.sqrt(queries.shape[-1])
    return torch.bmm(masked_softmax(scores, valid_lens), values)


def wrong(keep_of: Callable[[Tensor, int], Tensor]) -> Callable[..., Tensor]:
    """Return attention whose lengths keep other keys."""

    def attention(query, key, value, lengths=None):
        scores = scores_of(query, key)
        if lengths is not None:
            scores = hidden(scores, keep_of(lengths, key.shape[-2]))
        return scores.softmax(-1) @ value

    return attention


too_many = wrong(lambda lengths, keys: (torch.arange(keys) <= lengths[:, None])[:, None, None])
too_few = wrong(lambda lengths, keys: (torch.arange(keys) < lengths[:, None] - 1)[:, None, None])
inverted = wrong(lambda lengths, keys: (torch.arange(keys) >= lengths[:, None])[:, None, None])
of_longest = wrong(lambda lengths, keys: torch.arange(keys) < lengths.max())
of_first = wrong(lambda lengths, keys: torch.arange(keys) < lengths[0])


def ignored(query, key, value, lengths=None):
    """Attend to all keys, whatever the lengths."""
    return scores_of(query, key).softmax(-1) @ value


def of_lists(query, key, value, lengths=None):
    """Attend to parts of the keys; lengths is a list of lists."""
    if lengths is None:
        return scores_of(query, key).softmax(-1) @ value
    parts = [one.pop() for one in lengths]
    return sum(ignored(query, key[..., :end, :], value[..., :end, :]) for end in parts)


class EncoderLayer(nn.Module):
    """A layer whose attention takes the lengths of its sequences."""

    def __init__(self, d_model: int, heads: int, d_ff: int) -> None:
        super().__init__()
        self.heads = heads
        self.query, self.key, self.value, self.output = (
            nn.Linear(d_model, d_model) for _ in range(4)
        )
        self.inner, self.outer = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)
        self.first_norm, self.second_norm = nn.LayerNorm(d_model), nn.LayerNorm(d_model)

    def forward(self, x, lengths):
        query, key, value = (
            one(x).unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for one in (self.query, self.key, self.value)
        )
        attended = padded(query, key, value, lengths).transpose(1, 2).flatten(-2)
        x = self.first_norm(x + self.output(attended))
        return self.second_norm(x + self.outer(self.inner(x).relu()))
