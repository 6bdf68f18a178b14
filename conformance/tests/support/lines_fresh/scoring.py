"""Attention as functions: whole batches in one einsum, chunks of queries, one fused kernel."""

import math

import torch
import torch.nn.functional as F  # noqa: N812


def attend(q, k, v, mask=None):
    """mask is True where a key may be seen."""
    affinity = torch.einsum("nhid,nhjd->nhij", q, k)
    affinity = affinity.div(math.sqrt(q.size(-1)))
    if mask is not None:
        affinity = torch.where(mask, affinity, affinity.new_tensor(-1e30))
    peak = affinity.amax(dim=-1, keepdim=True)
    raised = torch.exp(affinity - peak)
    total = raised.sum(dim=-1, keepdim=True)
    return torch.einsum("nhij,nhjd->nhid", raised / total, v)


def chunked_attention(query, key, value, mask=None):
    """Two queries at a time; mask is True where a key may be seen."""
    temperature = key.shape[-1] ** -0.5
    pieces = []
    for start in range(0, query.shape[-2], 2):
        part = query[..., start : start + 2, :] * temperature
        logits = part @ key.transpose(-2, -1)
        if mask is not None:
            rows = mask.expand(*mask.shape[:-2], query.shape[-2], mask.shape[-1])
            logits = logits.masked_fill(~rows[..., start : start + 2, :], float("-inf"))
        pieces.append(F.softmax(logits, dim=-1) @ value)
    return torch.cat(pieces, dim=-2)


def fused_attention(query, key, value, mask=None):
    """mask is True where a key may be seen."""
    bias = None
    if mask is not None:
        bias = torch.zeros(mask.shape, dtype=query.dtype)
        bias = bias.masked_fill(mask.logical_not(), float("-inf"))
    return F.scaled_dot_product_attention(query, key, value, attn_mask=bias)
