"""Attention with a trained score for each head, beside those of the keys."""

import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812


class SinkAttention(nn.Module):
    """The score is joined to those of the keys, and its weight is cut off again."""

    def __init__(self, d_model, num_heads):
        super().__init__()
        self.num_heads, self.head_dim = num_heads, d_model // num_heads
        self.q_proj = nn.Linear(d_model, d_model)
        self.k_proj = nn.Linear(d_model, d_model)
        self.v_proj = nn.Linear(d_model, d_model)
        self.o_proj = nn.Linear(d_model, d_model)
        self.sinks = nn.Parameter(torch.zeros(num_heads))

    def forward(self, x, mask=None):
        b, t, d = x.shape
        q, k, v = (
            one(x).view(b, t, self.num_heads, self.head_dim).transpose(1, 2)
            for one in (self.q_proj, self.k_proj, self.v_proj)
        )
        scores = q @ k.transpose(-1, -2) * self.head_dim**-0.5
        if mask is not None:
            scores = scores.masked_fill(~mask, float("-inf"))
        sinks = self.sinks.reshape(1, -1, 1, 1).expand(b, -1, t, 1)
        combined = torch.cat([scores, sinks], dim=-1)
        combined = combined - combined.max(dim=-1, keepdim=True).values
        probs = F.softmax(combined, dim=-1)[..., :-1]
        return self.o_proj((probs @ v).transpose(1, 2).reshape(b, t, d))


class CausalSinkAttention(nn.Module):
    """Groups of query heads share keys, packed with the values; causal inside."""

    def __init__(self, hidden_size, n_heads, n_kv_heads):
        super().__init__()
        self.n_heads, self.n_kv_heads, self.head_dim = n_heads, n_kv_heads, hidden_size // n_heads
        self.sinks = nn.Parameter(torch.randn(n_heads))
        self.qkv = nn.Linear(hidden_size, self.head_dim * (n_heads + 2 * n_kv_heads))
        self.out = nn.Linear(self.head_dim * n_heads, hidden_size)

    def forward(self, x):
        b, t, _ = x.shape
        g, r = self.n_kv_heads, self.n_heads // self.n_kv_heads
        widths = [heads * self.head_dim for heads in (self.n_heads, g, g)]
        q, k, v = self.qkv(x).split(widths, dim=-1)
        q = q.view(b, t, g, r, self.head_dim)
        k = k.view(b, t, g, 1, self.head_dim).expand(-1, -1, -1, r, -1)
        v = v.view(b, t, g, 1, self.head_dim).expand(-1, -1, -1, r, -1)
        s = self.sinks.view(1, g, r, 1, 1).expand(b, -1, -1, t, -1)
        mask = torch.triu(q.new_full((t, t), -float("inf")), diagonal=1)
        qk = torch.einsum("bqgre,bkgre->bgrqk", q, k) / self.head_dim**0.5
        qk = torch.cat([qk + mask, s], dim=-1)
        w = torch.softmax(qk, dim=-1)[..., :-1]
        return self.out(torch.einsum("bgrqk,bkgre->bqgre", w, v).reshape(b, t, -1))
