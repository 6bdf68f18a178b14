"""Multi-head attention as modules: one linear map for each projection, or one for three."""

import math

import torch
import torch.nn.functional as F  # noqa: N812
from torch import nn


class MultiHeadedAttention(nn.Module):
    """Four linear maps, heads by view and transpose."""

    def __init__(self, h, d_model, dropout=0.1):
        super().__init__()
        assert d_model % h == 0, f"{d_model} is no multiple of {h} heads"
        self.d_k = d_model // h
        self.h = h
        self.w_q = nn.Linear(d_model, d_model)
        self.w_k = nn.Linear(d_model, d_model)
        self.w_v = nn.Linear(d_model, d_model)
        self.w_o = nn.Linear(d_model, d_model)
        self.dropout = nn.Dropout(dropout)

    def forward(self, query, key, value, mask=None):
        batch = query.size(0)
        q = self.w_q(query).view(batch, -1, self.h, self.d_k).transpose(1, 2)
        k = self.w_k(key).view(batch, -1, self.h, self.d_k).transpose(1, 2)
        v = self.w_v(value).view(batch, -1, self.h, self.d_k).transpose(1, 2)
        scores = q @ k.transpose(-2, -1) / math.sqrt(self.d_k)
        if mask is not None:
            scores = scores.masked_fill(mask == 0, -1e9)
        p_attn = self.dropout(scores.softmax(dim=-1))
        x = p_attn @ v
        x = x.transpose(1, 2).contiguous().view(batch, -1, self.h * self.d_k)
        return self.w_o(x)


class PackedSelfAttention(nn.Module):
    """One linear map for query, key and value; attends from a sequence to itself."""

    def __init__(self, embed_dim, num_heads):
        super().__init__()
        if embed_dim % num_heads:
            raise ValueError(f"embed_dim {embed_dim} is not divisible by num_heads {num_heads}")
        self.num_heads = num_heads
        self.head_dim = embed_dim // num_heads
        self.qkv = nn.Linear(embed_dim, 3 * embed_dim)
        self.proj = nn.Linear(embed_dim, embed_dim)

    def forward(self, x, mask=None):
        n, length, _ = x.shape
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        q = q.reshape(n, length, self.num_heads, self.head_dim).permute(0, 2, 1, 3)
        k = k.reshape(n, length, self.num_heads, self.head_dim).permute(0, 2, 1, 3)
        v = v.reshape(n, length, self.num_heads, self.head_dim).permute(0, 2, 1, 3)
        logits = torch.matmul(q, k.mT) * self.head_dim**-0.5
        if mask is not None:
            logits = logits.masked_fill(~mask, float("-inf"))
        attention = F.softmax(logits, dim=-1)
        z = torch.matmul(attention, v)
        z = z.permute(0, 2, 1, 3).flatten(2)
        return self.proj(z)


class UnbindingSelfAttention(nn.Module):
    """One linear map without bias whose output is unbound into query, key and value."""

    def __init__(self, dim, heads=8):
        super().__init__()
        if dim % heads != 0:
            raise ValueError(f"{heads} heads cannot share a width of {dim}")
        self.heads = heads
        self.scale = (dim // heads) ** -0.5
        self.to_qkv = nn.Linear(dim, dim * 3, bias=False)
        self.to_out = nn.Linear(dim, dim, bias=False)

    def forward(self, x, attn_mask=None):
        b, n, d = x.shape
        qkv = self.to_qkv(x).view(b, n, 3, self.heads, d // self.heads)
        query, key, value = qkv.permute(2, 0, 3, 1, 4).unbind(0)
        query = query * self.scale
        sim = torch.einsum("bhid,bhjd->bhij", query, key)
        if attn_mask is not None:
            sim = sim.masked_fill(attn_mask.logical_not(), -torch.finfo(sim.dtype).max)
        attn = sim.softmax(dim=-1)
        out = torch.einsum("bhij,bhjd->bhid", attn, value)
        out = out.transpose(1, 2).reshape(b, n, d)
        return self.to_out(out)


class CrossAttention(nn.Module):
    """Keys and values come from one map over the memory; the fused kernel attends."""

    def __init__(self, d_model, n_heads):
        super().__init__()
        if d_model % n_heads:
            raise ValueError(f"d_model={d_model}, n_heads={n_heads}: no whole head width")
        self.n_heads, self.d_head = n_heads, d_model // n_heads
        self.q_proj = nn.Linear(d_model, d_model)
        self.kv_proj = nn.Linear(d_model, 2 * d_model)
        self.out_proj = nn.Linear(d_model, d_model)

    def split_heads(self, t):
        return t.unflatten(-1, (self.n_heads, self.d_head)).transpose(1, 2)

    def forward(self, x, memory, mask=None):
        q = self.split_heads(self.q_proj(x))
        k, v = self.kv_proj(memory).split(self.n_heads * self.d_head, dim=-1)
        k, v = self.split_heads(k), self.split_heads(v)
        heads = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        merged = heads.transpose(1, 2).flatten(-2)
        return self.out_proj(merged)


class OneHead(nn.Module):
    def __init__(self, d_model, d_head):
        super().__init__()
        self.query = nn.Linear(d_model, d_head, bias=False)
        self.key = nn.Linear(d_model, d_head, bias=False)
        self.value = nn.Linear(d_model, d_head, bias=False)

    def forward(self, q, k, v, hide=None):
        q, k, v = self.query(q), self.key(k), self.value(v)
        wei = q @ k.transpose(-2, -1) * k.shape[-1] ** -0.5
        if hide is not None:
            wei = wei.masked_fill(hide, float("-inf"))
        return F.softmax(wei, dim=-1) @ v


class MultiHeadAttentionOfHeads(nn.Module):
    """A list of heads, each with maps of its own. mask: True at what must not be attended."""

    def __init__(self, d_model, num_heads):
        super().__init__()
        if d_model % num_heads:
            raise ValueError(f"{d_model} is not divisible by {num_heads}")
        self.heads = nn.ModuleList(
            [OneHead(d_model, d_model // num_heads) for _ in range(num_heads)]
        )
        self.output = nn.Linear(d_model, d_model, bias=False)

    def forward(self, query, key, value, mask=None):
        outs = [head(query, key, value, mask) for head in self.heads]
        return self.output(torch.cat(outs, dim=-1))
