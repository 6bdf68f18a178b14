"""Multi-head attention as people write it: every class is sound, and has conventions of its own."""

import copy
import math
from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional


def divided(width, heads):
    if width % heads:
        raise ValueError(f"{width} columns cannot be divided among {heads} heads")
    return width // heads


def attended(q, k, v, hide=None):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))
    if hide is not None:
        scores = scores.masked_fill(hide, -torch.inf)
    return scores.softmax(-1) @ v, scores


class MultiHeadAttention(nn.Module):
    """Values first, and a mask that is 1 where nobody may look."""

    def __init__(self, d_model, num_heads, dropout=0.1):
        super().__init__()
        self.num_heads, self.depth = num_heads, divided(d_model, num_heads)
        self.wq = nn.Linear(d_model, d_model)
        self.wk = nn.Linear(d_model, d_model)
        self.wv = nn.Linear(d_model, d_model)
        self.dense = nn.Linear(d_model, d_model)
        self.dropout = nn.Dropout(dropout)

    def split(self, x):
        return x.view(x.size(0), -1, self.num_heads, self.depth).transpose(1, 2)

    def forward(self, v, k, q, mask):
        q, k, v = self.split(self.wq(q)), self.split(self.wk(k)), self.split(self.wv(v))
        scores = q @ k.transpose(-1, -2) / math.sqrt(self.depth)
        if mask is not None:
            scores = scores + mask.to(scores.dtype) * -1e30
        weights = self.dropout(scores.softmax(-1))
        merged = (weights @ v).transpose(1, 2).flatten(2)
        return self.dense(merged), weights


class MultiHeadedAttention(nn.Module):
    def __init__(self, h, d_model, dropout=0.1):
        super().__init__()
        self.d_k, self.h = divided(d_model, h), h
        self.linears = nn.ModuleList(copy.deepcopy(nn.Linear(d_model, d_model)) for _ in range(4))
        self.dropout = nn.Dropout(p=dropout)

    def forward(self, query, key, value, mask=None):
        if mask is not None:
            mask = mask.unsqueeze(1)  # the same for all heads
        query, key, value = [
            linear(x).view(x.size(0), -1, self.h, self.d_k).transpose(1, 2)
            for linear, x in zip(self.linears, (query, key, value), strict=False)
        ]
        scores = query @ key.transpose(-2, -1) / math.sqrt(self.d_k)
        if mask is not None:
            scores = scores.masked_fill(mask == 0, -1e9)
        x = self.dropout(scores.softmax(dim=-1)) @ value
        x = x.transpose(1, 2).contiguous().view(x.size(0), -1, self.h * self.d_k)
        return self.linears[-1](x)


@dataclass
class GPTConfig:
    n_embd: int = 768
    n_head: int = 12
    block_size: int = 1024
    dropout: float = 0.0
    bias: bool = False


class CausalSelfAttention(nn.Module):
    def __init__(self, config: GPTConfig):
        super().__init__()
        self.n_head, self.width = config.n_head, divided(config.n_embd, config.n_head)
        self.c_attn = nn.Linear(config.n_embd, 3 * config.n_embd, bias=config.bias)
        self.c_proj = nn.Linear(config.n_embd, config.n_embd, bias=config.bias)

    def forward(self, x):
        q, k, v = (
            part.unflatten(-1, (self.n_head, self.width)).transpose(1, 2)
            for part in self.c_attn(x).chunk(3, dim=-1)
        )
        y = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.c_proj(y.transpose(1, 2).flatten(2))


class MultiHeadSelfAttention(nn.Module):
    def __init__(self, embed_dim: int, heads: int = 8):
        super().__init__()
        self.heads, self.head_dim = heads, divided(embed_dim, heads)
        self.values = nn.Linear(embed_dim, embed_dim, bias=False)
        self.keys = nn.Linear(embed_dim, embed_dim, bias=False)
        self.queries = nn.Linear(embed_dim, embed_dim, bias=False)
        self.fc_out = nn.Linear(embed_dim, embed_dim, bias=False)

    def forward(self, x, mask=None):
        """Attend over x (batch, length, embed_dim); mask: 1 = keep, 0 = masked."""
        q, k, v = (
            part.unflatten(-1, (self.heads, self.head_dim))
            for part in (self.queries(x), self.keys(x), self.values(x))
        )
        energy = torch.einsum("nqhd,nkhd->nhqk", q, k)
        if mask is not None:
            energy = energy.masked_fill(mask == 0, float("-1e20"))
        weights = torch.softmax(energy / self.head_dim**0.5, dim=3)
        return self.fc_out(torch.einsum("nhqk,nkhd->nqhd", weights, v).flatten(2))


class Attention(nn.Module):
    """Attention over patches: nothing is masked."""

    def __init__(self, dim, num_heads=8, qkv_bias=False, attn_drop=0.0, proj_drop=0.0):
        super().__init__()
        self.num_heads, self.scale = num_heads, divided(dim, num_heads) ** -0.5
        self.qkv = nn.Linear(dim, dim * 3, bias=qkv_bias)
        self.attn_drop = nn.Dropout(attn_drop)
        self.proj = nn.Linear(dim, dim, bias=qkv_bias)
        self.proj_drop = nn.Dropout(proj_drop)

    def forward(self, x):
        b, n, c = x.shape
        q, k, v = self.qkv(x).reshape(b, n, 3, self.num_heads, -1).permute(2, 0, 3, 1, 4).unbind(0)
        attn = self.attn_drop((q @ k.transpose(-2, -1) * self.scale).softmax(dim=-1))
        return self.proj_drop(self.proj((attn @ v).transpose(1, 2).reshape(b, n, c)))


class MHA(nn.Module):
    """Sequence first, as in torch: query (L, N, E), key and value (S, N, E)."""

    def __init__(self, embed_dim, num_heads, dropout=0.0, bias=True):
        super().__init__()
        self.num_heads, self.width = num_heads, divided(embed_dim, num_heads)
        self.q_proj = nn.Linear(embed_dim, embed_dim, bias=bias)
        self.k_proj = nn.Linear(embed_dim, embed_dim, bias=bias)
        self.v_proj = nn.Linear(embed_dim, embed_dim, bias=bias)
        self.out_proj = nn.Linear(embed_dim, embed_dim, bias=bias)

    def heads_of(self, x):
        return x.unflatten(-1, (self.num_heads, self.width)).permute(1, 2, 0, 3)

    def forward(self, query, key, value, key_padding_mask=None, need_weights=True, attn_mask=None):
        hide = None if attn_mask is None else attn_mask
        if key_padding_mask is not None:
            pads = key_padding_mask[:, None, None, :]
            hide = pads if hide is None else hide | pads
        q, k, v = (
            self.heads_of(part)
            for part in (self.q_proj(query), self.k_proj(key), self.v_proj(value))
        )
        output, scores = attended(q, k, v, hide)
        output = self.out_proj(output.permute(2, 0, 1, 3).flatten(2))
        return (output, scores.softmax(-1).mean(1)) if need_weights else output


class CrossAttention(nn.Module):
    """One source of keys and values, the input itself where there is none."""

    def __init__(self, n_state: int, n_head: int):
        super().__init__()
        self.n_head, self.width = n_head, divided(n_state, n_head)
        self.query = nn.Linear(n_state, n_state)
        self.key = nn.Linear(n_state, n_state)
        self.value = nn.Linear(n_state, n_state)
        self.out = nn.Linear(n_state, n_state)

    def forward(self, x, xa=None, mask=None):
        source = x if xa is None else xa
        q, k, v = (
            part.unflatten(-1, (self.n_head, self.width)).transpose(1, 2)
            for part in (self.query(x), self.key(source), self.value(source))
        )
        scores = q @ k.transpose(-1, -2) / math.sqrt(self.width)
        if mask is not None:
            scores = scores + mask
        return self.out((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))
