"""Decoding with kept keys and values, for the library's decoder layers, which have no cache.

A layer is taken apart: its projections, norms and linear maps are the library's modules, and
attention is `scaled_dot_product_attention`.

Shapes: B batch, S source length, T target length so far, N new tokens, H heads, E head width.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from .model import Transformer, hide_future, hide_padding, sinusoidal_positions


class KeyValueCache:
    """The keys and values of a batch in all decoder layers; `grow` and `reorder` change it."""

    def __init__(self, model: Transformer, src: Tensor) -> None:
        """Encode src (B, S), and project its memory for every layer, once."""
        memory = model.encode(src)
        self.hide_memory = hide_padding(src, model.src_pad)
        self.tokens = src[:, :0]
        self.layers: list[nn.TransformerDecoderLayer] = list(model.transformer.decoder.layers)
        self.memory = [project(one.multihead_attn, memory, 1, 2) for one in self.layers]
        self.own: list[list[Tensor]] = [[k[:, :, :0], v[:, :, :0]] for k, v in self.memory]

    def grow(self, number: int, new: list[Tensor]) -> list[Tensor]:
        """Append keys and values (B, H, N, E) to those of a layer, and return all of them."""
        held = [torch.cat(pair, dim=2) for pair in zip(self.own[number], new, strict=True)]
        self.own[number] = held
        return held

    def reorder(self, rows: Tensor) -> None:
        """Continue the rows (B,), each of which may occur several times or never."""
        self.own = [[one[rows] for one in pair] for pair in self.own]
        self.memory = [[one[rows] for one in pair] for pair in self.memory]
        self.tokens, self.hide_memory = self.tokens[rows], self.hide_memory[rows]


def step(model: Transformer, cache: KeyValueCache, tgt: Tensor) -> Tensor:
    """Map new tokens (B, N) to raw logits (B, N, V), and keep their keys and values."""
    start = cache.tokens.size(1)
    cache.tokens = torch.cat([cache.tokens, tgt], dim=1)
    hidden = hide_padding(cache.tokens, model.tgt_pad)[:, None, None]
    keep = ~(hidden | hide_future(cache.tokens.size(1), tgt.device)[start:])
    keep_memory = ~cache.hide_memory[:, None, None]

    x = model.target_embedding(tgt)
    places = sinusoidal_positions(cache.tokens.size(1), x.size(-1))[start:]
    x = model.positions.dropout(x + places.to(x))
    for number, layer in enumerate(cache.layers):
        own = layer.self_attn
        query, *new = project(own, x, 0, 1, 2)
        x = layer.norm1(x + layer.dropout1(attend(own, query, cache.grow(number, new), keep)))
        cross = layer.multihead_attn
        (query,) = project(cross, x, 0)
        read = attend(cross, query, cache.memory[number], keep_memory)
        x = layer.norm2(x + layer.dropout2(read))
        inner = layer.dropout(layer.activation(layer.linear1(x)))
        x = layer.norm3(x + layer.dropout3(layer.linear2(inner)))
    logits: Tensor = model.generator(model.transformer.decoder.norm(x))
    return logits


def project(heads: nn.MultiheadAttention, x: Tensor, *parts: int) -> list[Tensor]:
    """Return queries, keys or values (0, 1 or 2) of x (B, L, D) in heads, (B, H, L, E) each."""
    weights, biases = heads.in_proj_weight.chunk(3), heads.in_proj_bias.chunk(3)
    flat = [functional.linear(x, weights[part], biases[part]) for part in parts]
    return [one.view(*x.shape[:2], heads.num_heads, -1).transpose(1, 2) for one in flat]


def attend(heads: nn.MultiheadAttention, query: Tensor, pair: list[Tensor], keep: Tensor) -> Tensor:
    """Attend to keys and values, and mix the heads: (B, H, N, E) to (B, N, D)."""
    rate = heads.dropout if heads.training else 0.0
    key, value = pair
    context = functional.scaled_dot_product_attention(query, key, value, keep, rate)
    mixed: Tensor = heads.out_proj(context.transpose(1, 2).flatten(2))
    return mixed
