"""Decoding with kept keys and values, as functions of a cache that never changes.

Shapes: B batch, S source, T target so far, N new tokens, H heads, D model width, V vocabulary.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from .model import (
    MultiHeadAttention,
    Transformer,
    attention,
    causal_mask,
    embed,
    padding_mask,
    positions,
)


class Cache(NamedTuple):
    """The keys and values (B, H, S or T, D) of the memory and of the target so far."""

    memory_keys: Tensor
    memory_values: Tensor
    memory_mask: Tensor
    keys: Tensor
    values: Tensor
    tokens: Tensor


def start(model: Transformer, src: Tensor) -> Cache:
    """Encode src (B, S); nothing is written yet."""
    memory, cross = model.encode(src), model.decoder.cross_attention
    keys, values = cross.split(cross.W_k(memory)), cross.split(cross.W_v(memory))
    none = keys[:, :, :0]
    return Cache(keys, values, padding_mask(src, model.src_pad), none, none, src[:, :0])


def step(model: Transformer, cache: Cache, tokens: Tensor) -> tuple[Tensor, Cache]:
    """Return raw logits (B, N, V) for new tokens (B, N), and the cache with them."""
    decoder, own = model.decoder, model.decoder.masked_attention
    written = torch.cat([cache.tokens, tokens], dim=-1)
    length = written.size(-1)
    new = slice(length - tokens.size(-1), length)
    hidden = padding_mask(written, model.tgt_pad) + causal_mask(length, tokens.device)[new]

    x = embed(tokens, model.tgt_embedding)
    x = x + positions(length, x.size(-1))[new].to(x)
    keys = torch.cat([cache.keys, own.split(own.W_k(x))], dim=-2)
    values = torch.cat([cache.values, own.split(own.W_v(x))], dim=-2)
    x = decoder.norm(look_up(own, x, keys, values, hidden) + x)
    memory = cache.memory_keys, cache.memory_values, cache.memory_mask
    x = decoder.norm(look_up(decoder.cross_attention, x, *memory) + x)
    logits: Tensor = model.output(decoder.norm(decoder.ffn(x) + x))
    return logits, cache._replace(keys=keys, values=values, tokens=written)


def look_up(
    heads: MultiHeadAttention, x: Tensor, keys: Tensor, values: Tensor, mask: Tensor
) -> Tensor:
    """Attend from x (B, N, D) to keys and values in heads."""
    context, _ = attention(heads.split(heads.W_q(x)), keys, values, mask)
    out: Tensor = heads.W_o(context.transpose(-3, -2).flatten(-2))
    return out


def reorder(cache: Cache, rows: Tensor) -> Cache:
    """Return the cache of the rows (B,)."""
    return Cache(*(one[rows] for one in cache))
