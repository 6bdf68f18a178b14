"""Decoding step by step, without reading old words again: their keys and values are kept.

What a decoder layer computes for a word does not depend on later words. So a step runs the new
words alone through the layers, and attends to the keys and values of all words so far. Those of the
memory are computed once, when the source is read.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from .model import EncoderDecoder, MultiHeadedAttention, attention, make_std_mask

KeysValues = tuple[Tensor, Tensor]


@dataclass(frozen=True)
class Cache:
    """The state after some words `ys` (B, T): one pair of keys and values for each layer.

    `src_mask` (B, 1, S) belongs to the pairs of the memory. A step makes a new cache out of an old
    one and leaves the old one as it was.
    """

    src_mask: Tensor
    memory: tuple[KeysValues, ...]
    words: tuple[KeysValues, ...]
    ys: Tensor


def start(model: EncoderDecoder, src: Tensor, src_mask: Tensor) -> Cache:
    """Read the source (B, S) with its mask (B, 1, S), and return a cache without words."""
    memory = model.encode(src, src_mask)
    layers: Any = model.decoder.layers
    read = tuple(keys_values(layer.src_attn, memory) for layer in layers)
    none = tuple((k[:, :, :0], v[:, :, :0]) for k, v in read)
    return Cache(src_mask, read, none, src[:, :0])


def step(model: EncoderDecoder, cache: Cache, ys: Tensor, pad: int) -> tuple[Tensor, Cache]:
    """Return the generator's scores (B, N, V) for new words `ys` (B, N), and the longer cache."""
    start = cache.ys.size(1)
    seen = torch.cat([cache.ys, ys], dim=1)
    mask = make_std_mask(seen, pad)[:, start:]
    x = embed(model.tgt_embed, ys, start)
    words = []
    for layer, kept, memory in zip(model.decoder.layers, cache.words, cache.memory, strict=True):
        x, grown = _layer_step(layer, x, kept, memory, cache.src_mask, mask)
        words.append(grown)
    scores: Tensor = model.generator(model.decoder.norm(x))
    return scores, Cache(cache.src_mask, cache.memory, tuple(words), seen)


def _layer_step(
    layer: Any,
    x: Tensor,
    kept: KeysValues,
    memory: KeysValues,
    src_mask: Tensor,
    mask: Tensor,
) -> tuple[Tensor, KeysValues]:
    grown = kept

    def attend(x: Tensor) -> Tensor:
        nonlocal grown
        key, value = keys_values(layer.self_attn, x)
        grown = torch.cat([kept[0], key], dim=2), torch.cat([kept[1], value], dim=2)
        return look_up(layer.self_attn, x, grown, mask)

    x = layer.sublayer[0](x, attend)
    x = layer.sublayer[1](x, lambda x: look_up(layer.src_attn, x, memory, src_mask))
    return layer.sublayer[2](x, layer.feed_forward), grown


def reorder(cache: Cache, rows: Tensor) -> Cache:
    """Return the cache of the rows (B,), each of which may occur several times or never."""
    return Cache(
        cache.src_mask[rows],
        tuple((k[rows], v[rows]) for k, v in cache.memory),
        tuple((k[rows], v[rows]) for k, v in cache.words),
        cache.ys[rows],
    )


def embed(embedding: Any, ys: Tensor, start: int) -> Tensor:
    """Embed words (B, N) whose first one is at position `start`; ValueError beyond the table."""
    lookup, position = embedding
    end, max_len = start + ys.size(1), position.pe.size(1)
    if end > max_len:
        raise ValueError(f"the words end at position {end} and the table at max_len = {max_len}")
    x = lookup(ys)
    out: Tensor = position.dropout(x + position.pe[:, start:end].to(x.dtype))
    return out


def keys_values(attn: MultiHeadedAttention, x: Tensor) -> KeysValues:
    """Project x (B, K, D) to keys and values in heads, (B, H, K, E) each."""
    return attn.split(attn.linears[1](x)), attn.split(attn.linears[2](x))


def look_up(attn: MultiHeadedAttention, x: Tensor, pair: KeysValues, mask: Tensor) -> Tensor:
    """Attend from x (B, N, D) to keys and values that are there already."""
    query = attn.split(attn.linears[0](x))
    mixed, _ = attention(query, *pair, mask.unsqueeze(1), attn.dropout)
    out: Tensor = attn.linears[-1](attn.merge(mixed))
    return out
