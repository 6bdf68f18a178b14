"""A model whose masks have conventions of their own, and which makes them in single precision.

Its causal mask is added to the scores, and its masks of padding are True for padding. Both become a
mask in float32 whatever the precision of the queries, which a kernel of torch reads wrongly in
double precision.
"""

import torch
from parts import PositionwiseFeedForward
from torch import nn
from torch.nn import functional


class Heads(nn.Module):
    """Multi-head attention by the kernel of torch, under a mask that is added."""

    def __init__(self, d_model, num_heads):
        super().__init__()
        assert d_model % num_heads == 0
        self.num_heads = num_heads
        self.query = nn.Linear(d_model, d_model)
        self.key = nn.Linear(d_model, d_model)
        self.value = nn.Linear(d_model, d_model)
        self.output = nn.Linear(d_model, d_model)

    def forward(self, query, key, value, mask):
        """Attend to `key` and `value` (B, K, D)."""
        q, k, v = (
            one.view(*one.shape[:2], self.num_heads, -1).transpose(1, 2)
            for one in (self.query(query), self.key(key), self.value(value))
        )
        heads = functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        return self.output(heads.transpose(1, 2).flatten(2))


class Layer(nn.Module):
    """A layer of the encoder, or of the decoder where it gets a memory."""

    def __init__(self, d_model, num_heads, d_ff, memory=False):
        super().__init__()
        self.self_attention = Heads(d_model, num_heads)
        self.self_attention_norm = nn.LayerNorm(d_model)
        self.cross_attention = Heads(d_model, num_heads) if memory else None
        self.cross_attention_norm = nn.LayerNorm(d_model) if memory else None
        self.feed_forward = PositionwiseFeedForward(d_model, d_ff)
        self.feed_forward_norm = nn.LayerNorm(d_model)

    def forward(self, x, mask, memory=None, memory_mask=None):
        """Apply the sublayers to `x` (B, L, D)."""
        x = self.self_attention_norm(x + self.self_attention(x, x, x, mask))
        if memory is not None:
            found = self.cross_attention(x, memory, memory, memory_mask)
            x = self.cross_attention_norm(x + found)
        return self.feed_forward_norm(x + self.feed_forward(x))


def added(padding, rows):
    """Return what is added to the scores of `rows` queries for `padding` (B, K)."""
    return torch.where(padding[:, None, None], -torch.inf, 0).expand(-1, 1, rows, -1)


class Translator(nn.Module):
    """A Transformer that is given an additive causal mask and boolean masks of padding."""

    order = 1

    def __init__(self, src_vocab, tgt_vocab, d_model, num_heads, d_ff, num_layers, max_len):
        super().__init__()
        self.src_embedding = nn.Embedding(src_vocab, d_model)
        self.tgt_embedding = nn.Embedding(tgt_vocab, d_model)
        self.src_positions = nn.Embedding(max_len, d_model)
        self.tgt_positions = nn.Embedding(max_len, d_model)
        sizes = d_model, num_heads, d_ff
        self.encoder = nn.ModuleList(Layer(*sizes) for _ in range(num_layers))
        self.decoder = nn.ModuleList(Layer(*sizes, memory=True) for _ in range(num_layers))
        self.generator = nn.Linear(d_model, tgt_vocab)

    def forward(self, src, tgt, tgt_mask, src_key_padding_mask, tgt_key_padding_mask):
        """Return logits (B, T, V); `tgt_mask` (T, T) is added to the scores."""
        n, m = src.shape[1], tgt.shape[1]
        memory = self.src_embedding(src) + self.src_positions.weight[:n]
        for layer in self.encoder:
            memory = layer(memory, added(src_key_padding_mask, n))
        x = self.tgt_embedding(tgt) + self.tgt_positions.weight[:m]
        mask = self.order * tgt_mask + added(tgt_key_padding_mask, m)
        for layer in self.decoder:
            x = layer(x, mask, memory, added(src_key_padding_mask, m))
        return self.generator(x)


class LateMask(Translator):
    """One that lets each step see the next one."""

    def forward(self, src, tgt, tgt_mask, src_key_padding_mask, tgt_key_padding_mask):
        """Shift the causal mask by one step."""
        later = functional.pad(tgt_mask, (0, 1))[:, 1:]
        return super().forward(src, tgt, later, src_key_padding_mask, tgt_key_padding_mask)
