"""Attention as people write it: every function is sound, and has conventions of its own."""

import math
from typing import NamedTuple

import torch
from torch import Tensor


def attention(query, key, value, mask=None, dropout=None):
    """Compute 'Scaled Dot Product Attention'."""
    d_k = query.size(-1)
    scores = torch.matmul(query, key.transpose(-2, -1)) / math.sqrt(d_k)
    if mask is not None:
        scores = scores.masked_fill(mask == 0, -1e9)
    p_attn = scores.softmax(dim=-1)
    if dropout is not None:
        p_attn = dropout(p_attn)
    return torch.matmul(p_attn, value), p_attn


def scaled_dot_product_attention(Q, K, V, attn_mask):  # noqa: N803
    scores = torch.bmm(Q, K.transpose(1, 2)) / math.sqrt(Q.size(-1))
    scores = scores.masked_fill(attn_mask, -1e9)
    attn = torch.softmax(scores, dim=2)
    return attn, torch.bmm(attn, V)


def attend(values, keys, queries, *, mask=None, scale=None):
    scale = scale or queries.shape[-1] ** -0.5
    logits = torch.einsum("bhqd,bhkd->bhqk", queries * scale, keys)
    if mask is not None:
        logits = logits + mask
    return torch.einsum("bhqk,bhkd->bhqd", logits.softmax(-1), values)


def dot_product_attention(q, k, v, valid=None):
    """Attend over tensors of shape (batch, length, heads, channels)."""
    scores = torch.einsum("bqhc,bkhc->bhqk", q, k) / q.shape[-1] ** 0.5
    if valid is not None:
        scores = torch.where(valid, scores, torch.finfo(scores.dtype).min)
    return torch.einsum("bhqk,bkhc->bqhc", torch.softmax(scores, -1), v)


def sdpa(attention_mask, q, k, v):
    scores = q.matmul(k.transpose(-1, -2)).div(q.size(-1) ** 0.5)
    if attention_mask is not None:
        scores = scores + (1.0 - attention_mask) * -1e30
    probs = scores.softmax(-1)
    return {"attn_weights": probs, "context": probs.matmul(v)}


def scaled_attention(Q, K, V, M=None):  # noqa: N803
    """Attend with matrices, as on the blackboard."""
    S = Q @ K.T / math.sqrt(K.shape[1])  # noqa: N806
    if M is not None:
        S = S.masked_fill(~M, -torch.inf)  # noqa: N806
    return torch.softmax(S, dim=-1) @ V


class Attended(NamedTuple):
    attention: Tensor
    output: Tensor


def softmax_attention(q: Tensor, k: Tensor, v: Tensor, pad_mask: Tensor | None = None) -> Attended:
    """Attend.

    pad_mask: 1 at the positions that are padding and have to be ignored.
    """
    scores = q @ k.mT / math.sqrt(q.shape[-1])
    if pad_mask is not None:
        scores = scores.masked_fill(pad_mask.bool(), float("-inf"))
    weights = scores.softmax(-1)
    return Attended(weights, weights @ v)


class ScaledDotProductAttention(torch.nn.Module):
    def __init__(self, dropout=0.1):
        super().__init__()
        self.dropout = torch.nn.Dropout(dropout)

    def forward(self, q, k, v, d_k, mask=None):
        scores = q @ k.transpose(2, 3) / math.sqrt(d_k)
        if mask is not None:
            scores = scores.masked_fill(mask.logical_not(), -torch.inf)
        weights = self.dropout(scores.softmax(-1))
        return weights @ v, weights
