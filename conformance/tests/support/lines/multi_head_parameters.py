"""Multi-head attention on bare parameters: einsum, F.linear, sequence-first, a dictionary."""

import torch
import torch.nn.functional as F  # noqa: N812
from torch import nn


class EinsumAttention(nn.Module):
    """Parameters by head: (heads, d_model, d_head)."""

    def __init__(self, d_model, n_heads):
        super().__init__()
        if d_model % n_heads != 0:
            raise ValueError(f"d_model {d_model} must be a multiple of n_heads {n_heads}")
        d_head = d_model // n_heads
        self.W_Q = nn.Parameter(torch.randn(n_heads, d_model, d_head) / d_model**0.5)
        self.W_K = nn.Parameter(torch.randn(n_heads, d_model, d_head) / d_model**0.5)
        self.W_V = nn.Parameter(torch.randn(n_heads, d_model, d_head) / d_model**0.5)
        self.W_O = nn.Parameter(torch.randn(n_heads, d_head, d_model) / d_model**0.5)
        self.d_head = d_head

    def forward(self, query, key, value, mask=None):
        q = torch.einsum("bqd,hde->bhqe", query, self.W_Q)
        k = torch.einsum("bkd,hde->bhke", key, self.W_K)
        v = torch.einsum("bkd,hde->bhke", value, self.W_V)
        scores = torch.einsum("bhqe,bhke->bhqk", q, k) / self.d_head**0.5
        if mask is not None:
            scores = scores.masked_fill(~mask, -1e9)
        pattern = scores.softmax(-1)
        z = torch.einsum("bhqk,bhke->bhqe", pattern, v)
        return torch.einsum("bhqe,hed->bqd", z, self.W_O)


class SequenceFirstAttention(nn.Module):
    """query, key, value: (length, batch, embed_dim); key_padding_mask: True at padding."""

    def __init__(self, embed_dim, num_heads):
        super().__init__()
        if embed_dim % num_heads:
            raise ValueError(f"embed_dim {embed_dim} not divisible by {num_heads}")
        self.embed_dim, self.num_heads = embed_dim, num_heads
        self.head_dim = embed_dim // num_heads
        self.in_proj_weight = nn.Parameter(torch.empty(3 * embed_dim, embed_dim))
        self.in_proj_bias = nn.Parameter(torch.zeros(3 * embed_dim))
        self.out_proj = nn.Linear(embed_dim, embed_dim)
        nn.init.xavier_uniform_(self.in_proj_weight)

    def forward(self, query, key, value, key_padding_mask=None):
        tgt_len, bsz, _ = query.shape
        w_q, w_k, w_v = self.in_proj_weight.chunk(3)
        b_q, b_k, b_v = self.in_proj_bias.chunk(3)
        q = F.linear(query, w_q, b_q) * self.head_dim**-0.5
        k = F.linear(key, w_k, b_k)
        v = F.linear(value, w_v, b_v)
        q = q.contiguous().view(tgt_len, bsz * self.num_heads, self.head_dim).transpose(0, 1)
        k = k.contiguous().view(-1, bsz * self.num_heads, self.head_dim).transpose(0, 1)
        v = v.contiguous().view(-1, bsz * self.num_heads, self.head_dim).transpose(0, 1)
        attn_weights = torch.bmm(q, k.transpose(1, 2))
        if key_padding_mask is not None:
            attn_weights = attn_weights.view(bsz, self.num_heads, tgt_len, -1)
            hidden = key_padding_mask[:, None, None, :]
            attn_weights = attn_weights.masked_fill(hidden, float("-inf"))
            attn_weights = attn_weights.view(bsz * self.num_heads, tgt_len, -1)
        attn_probs = F.softmax(attn_weights, dim=-1)
        attn = torch.bmm(attn_probs, v)
        attn = attn.transpose(0, 1).contiguous().view(tgt_len, bsz, self.embed_dim)
        return self.out_proj(attn)


def heads_of(x, w, b, n):
    """Project x by w and b, and split the result into n heads (B, n, L, E)."""
    y = x @ w + b
    return y.view(x.shape[0], x.shape[1], n, -1).swapaxes(1, 2)


def attend(p, q_in, k_in, v_in, n, mask):
    """Multi-head attention with its parameters in a dictionary, weights as (in, out)."""
    q = heads_of(q_in, p["wq"], p["bq"], n)
    k = heads_of(k_in, p["wk"], p["bk"], n)
    v = heads_of(v_in, p["wv"], p["bv"], n)
    logits = q @ k.swapaxes(2, 3) / q.shape[-1] ** 0.5
    if mask is not None:
        logits = logits + (1.0 - mask.to(logits.dtype)) * -1e30
    probs = logits.softmax(-1)
    mix = (probs @ v).swapaxes(1, 2).flatten(2)
    return mix @ p["wo"] + p["bo"]


class FunctionalAttention(nn.Module):
    """Holds the dictionary of parameters and calls a function."""

    def __init__(self, hidden_size, num_attention_heads):
        super().__init__()
        if hidden_size % num_attention_heads:
            raise ValueError(f"{hidden_size} is no multiple of {num_attention_heads}")
        self.n = num_attention_heads
        self.p = nn.ParameterDict()
        for name in "qkvo":
            self.p[f"w{name}"] = nn.Parameter(torch.randn(hidden_size, hidden_size) * 0.05)
            self.p[f"b{name}"] = nn.Parameter(torch.zeros(hidden_size))

    def forward(self, query, key, value, attention_mask=None):
        return attend(self.p, query, key, value, self.n, attention_mask)
