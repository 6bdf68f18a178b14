"""Step 8. Decoding with a cache: buffers for the keys and values of every decoder layer.

The buffers are as long as the longest sentence. They are filled from the left, in place, and what
lies behind the last word is never read.
"""

from __future__ import annotations

import torch
from torch import Tensor

from .model import (
    DecoderLayer,
    MultiHeadAttention,
    Transformer,
    make_no_peek_mask,
    make_pad_mask,
)


class LayerCache:
    """The keys and values of one decoder layer: of the memory, and of the words so far."""

    def __init__(self, layer: DecoderLayer, memory: Tensor, max_len: int) -> None:
        self.layer = layer
        attention = layer.enc_dec_attention
        self.memory_k = attention.split(attention.w_k(memory))
        self.memory_v = attention.split(attention.w_v(memory))
        batch, n_head, _, width = self.memory_k.shape
        self.k = memory.new_zeros(batch, n_head, max_len, width)
        self.v = memory.new_zeros(batch, n_head, max_len, width)

    def write(self, x: Tensor, start: int) -> tuple[Tensor, Tensor]:
        """Write keys and values of x (B, N, D) at `start`, and return all that are written."""
        attention, end = self.layer.self_attention, start + x.size(1)
        self.k[:, :, start:end] = attention.split(attention.w_k(x))
        self.v[:, :, start:end] = attention.split(attention.w_v(x))
        return self.k[:, :, :end], self.v[:, :, :end]

    def reorder(self, rows: Tensor) -> None:
        """Take the rows (B,) in the place of the present ones."""
        self.k, self.v = self.k[rows], self.v[rows]
        self.memory_k, self.memory_v = self.memory_k[rows], self.memory_v[rows]


class CachedDecoder:
    """Decode one batch of sources, some words at a time."""

    def __init__(self, model: Transformer, src: Tensor) -> None:
        """Encode the source (B, S), once."""
        self.model = model
        self.src_mask = model.make_src_mask(src)
        memory = model.encode(src)
        max_len = model.decoder.emb.position.table.size(0)
        self.layers = [LayerCache(layer, memory, max_len) for layer in model.decoder.layers]  # type: ignore[arg-type]  # of a ModuleList
        self.words = src[:, :0]

    def step(self, trg: Tensor) -> Tensor:
        """Map the next words (B, N) to logits (B, N, V); ValueError beyond max_len."""
        start = self.words.size(1)
        self.words = torch.cat([self.words, trg], dim=1)
        mask = self.mask()[:, :, start:]
        x = self.embed(trg, start)
        for cache in self.layers:
            x = self.layer_step(cache, x, start, mask)
        logits: Tensor = self.model.decoder.linear(x)
        return logits

    def mask(self) -> Tensor:
        """Return the mask (B, 1, L, L) of all words so far."""
        no_peek = make_no_peek_mask(self.words.size(1), self.words.device)
        return make_pad_mask(self.words, self.model.trg_pad) & no_peek

    def embed(self, trg: Tensor, start: int) -> Tensor:
        """Map words (B, N) from the position `start` on to (B, N, D)."""
        emb = self.model.decoder.emb
        positions = emb.position(start + trg.size(1))[start:]
        x: Tensor = emb.dropout(emb.token(trg) + positions)
        return x

    def layer_step(self, cache: LayerCache, x: Tensor, start: int, mask: Tensor) -> Tensor:
        """Map new rows (B, N, D) through one decoder layer."""
        layer = cache.layer
        attended = look_up(layer.self_attention, x, *cache.write(x, start), mask)
        x = layer.norm1(x + layer.dropout1(attended))

        looked_up = look_up(
            layer.enc_dec_attention, x, cache.memory_k, cache.memory_v, self.src_mask
        )
        x = layer.norm2(x + layer.dropout2(looked_up))

        fed = layer.ffn(x)
        out: Tensor = layer.norm3(x + layer.dropout3(fed))
        return out

    def reorder(self, rows: Tensor) -> None:
        """Continue the rows (B,) in the place of the present ones."""
        for cache in self.layers:
            cache.reorder(rows)
        self.words, self.src_mask = self.words[rows], self.src_mask[rows]


def look_up(attention: MultiHeadAttention, x: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
    """Attend from x (B, N, D) to keys and values (B, H, L, E) that are there already."""
    q = attention.split(attention.w_q(x))
    context, _ = attention.attention(q, k, v, mask)
    out: Tensor = attention.linear(attention.merge(context))
    return out
