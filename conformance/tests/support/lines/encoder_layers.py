"""Encoder layers, each complete with its attention."""

import math

import torch
import torch.nn.functional as F  # noqa: N812
from torch import nn


class Attention(nn.Module):
    def __init__(self, d_model, heads):
        super().__init__()
        if d_model % heads:
            raise ValueError(f"d_model {d_model} is not a multiple of heads {heads}")
        self.heads, self.d_k = heads, d_model // heads
        self.q, self.k = nn.Linear(d_model, d_model), nn.Linear(d_model, d_model)
        self.v, self.o = nn.Linear(d_model, d_model), nn.Linear(d_model, d_model)

    def forward(self, query, key, value, mask=None):
        b, n, d = query.shape
        q, k, v = (
            f(t).view(b, -1, self.heads, self.d_k).transpose(1, 2)
            for f, t in ((self.q, query), (self.k, key), (self.v, value))
        )
        s = q @ k.transpose(2, 3) / math.sqrt(self.d_k)
        if mask is not None:
            s = s.masked_fill(mask == 0, -1e9)
        a = s.softmax(-1)
        return self.o((a @ v).transpose(1, 2).reshape(b, n, d))


class EncoderLayer(nn.Module):
    """Post-norm, dropout after each sublayer."""

    def __init__(self, d_model, num_heads, d_ff, dropout=0.1):
        super().__init__()
        self.self_attn = Attention(d_model, num_heads)
        self.linear1 = nn.Linear(d_model, d_ff)
        self.linear2 = nn.Linear(d_ff, d_model)
        self.norm1 = nn.LayerNorm(d_model)
        self.norm2 = nn.LayerNorm(d_model)
        self.dropout1 = nn.Dropout(dropout)
        self.dropout2 = nn.Dropout(dropout)

    def forward(self, x, mask=None):
        attended = self.self_attn(x, x, x, mask)
        x = x + self.dropout1(attended)
        x = self.norm1(x)
        inner = F.relu(self.linear1(x))
        fed = self.linear2(inner)
        x = x + self.dropout2(fed)
        return self.norm2(x)


class TransformerEncoderBlock(nn.Module):
    """Pre-norm, with the library's attention. key_padding_mask: True at padding."""

    def __init__(self, embed_dim, num_heads, ff_dim, dropout=0.1):
        super().__init__()
        self.attn = nn.MultiheadAttention(embed_dim, num_heads, batch_first=True)
        self.ln_1 = nn.LayerNorm(embed_dim)
        self.ln_2 = nn.LayerNorm(embed_dim)
        self.fc = nn.Linear(embed_dim, ff_dim)
        self.proj = nn.Linear(ff_dim, embed_dim)
        self.drop = nn.Dropout(dropout)

    def forward(self, x, key_padding_mask=None):
        h = self.ln_1(x)
        h, _ = self.attn(h, h, h, key_padding_mask=key_padding_mask, need_weights=False)
        x = x + self.drop(h)
        m = self.ln_2(x)
        m = torch.relu(self.fc(m))
        return x + self.drop(self.proj(m))


class PackedEncoderLayer(nn.Module):
    """Everything in one forward: packed projection, fused attention, post-norm by function."""

    def __init__(self, d_model, n_head, dim_feedforward):
        super().__init__()
        if d_model % n_head:
            raise ValueError(f"d_model {d_model} is not divisible by n_head {n_head}")
        self.n_head = n_head
        self.qkv_proj = nn.Linear(d_model, 3 * d_model)
        self.out_proj = nn.Linear(d_model, d_model)
        self.attn_norm = nn.LayerNorm(d_model)
        self.up = nn.Linear(d_model, dim_feedforward)
        self.down = nn.Linear(dim_feedforward, d_model)
        self.ffn_norm = nn.LayerNorm(d_model)

    def forward(self, hidden, attn_mask=None):
        batch, steps, width = hidden.shape
        packed = self.qkv_proj(hidden).view(batch, steps, 3, self.n_head, -1)
        q, k, v = packed.transpose(1, 3).unbind(2)
        seen = F.scaled_dot_product_attention(q, k, v, attn_mask=attn_mask)
        seen = seen.transpose(1, 2).reshape(batch, steps, width)
        hidden = self.attn_norm(hidden + self.out_proj(seen))
        return self.ffn_norm(hidden + self.down(F.relu(self.up(hidden))))
