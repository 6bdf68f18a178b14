"""Scaled dot-product attention as functions, each in another style."""

import math

import torch
import torch.nn.functional as F  # noqa: N812


def einsum_attention(query, key, value, mask=None):
    d_k = query.shape[-1]
    scores = torch.einsum("bhqd,bhkd->bhqk", query, key)
    scores = scores / math.sqrt(d_k)
    if mask is not None:
        scores = torch.where(mask, scores, float("-inf"))
    weights = scores.softmax(dim=-1)
    return torch.einsum("bhqk,bhkd->bhqd", weights, value)


def batched_attention(q, k, v, mask=None):
    """q, k, v: (batch, heads, length, width); mask: True may be attended."""
    batch, heads, queries, width = q.shape
    keys = k.size(2)
    if mask is None:
        bias = q.new_zeros(batch * heads, queries, keys)
    else:
        keep = mask.expand(batch, heads, queries, keys).reshape(-1, queries, keys)
        bias = q.new_zeros(keep.shape).masked_fill_(keep.logical_not(), -torch.inf)
    flat_q, flat_k = q.reshape(-1, queries, width), k.reshape(-1, keys, width)
    flat_v = v.reshape(-1, keys, v.size(-1))
    logits = torch.baddbmm(bias, flat_q, flat_k.transpose(1, 2), alpha=width**-0.5)
    probabilities = F.softmax(logits, dim=2)
    mixed = torch.bmm(probabilities, flat_v)
    return mixed.view(batch, heads, queries, -1)


def fused_attention(query, key, value, attn_mask=None):
    """Attention by the fused kernel; attn_mask is 1 for keys that may be attended."""
    if attn_mask is not None:
        attn_mask = attn_mask.bool()
    return F.scaled_dot_product_attention(query, key, value, attn_mask)


def attention_by_hand(queries, keys, values, valid=None):
    """Softmax written out. All tensors are (batch, length, heads, channels)."""
    c = queries.size(3)
    queries = queries * c**-0.5
    energy = torch.einsum("bqhc,bkhc->bhqk", queries, keys)
    if valid is not None:
        energy = energy.masked_fill(~valid, -1e30)
    peak = energy.amax(-1, keepdim=True)
    powers = torch.exp(energy - peak)
    total = powers.sum(-1, keepdim=True)
    share = powers / total
    return torch.einsum("bhqk,bkhc->bqhc", share, values)


class DotProductAttention(torch.nn.Module):
    """Attention with dropout; returns the context and the attention map."""

    def __init__(self, dropout=0.0):
        super().__init__()
        self.dropout = torch.nn.Dropout(dropout)

    def forward(self, q, k, v, mask=None):
        d = k.size(-1)
        attn = torch.matmul(q / d**0.5, k.transpose(2, 3))
        if mask is not None:
            attn = attn.masked_fill(mask == 0, -1e9)
        attn = self.dropout(torch.softmax(attn, dim=-1))
        context = torch.matmul(attn, v)
        return context, attn
