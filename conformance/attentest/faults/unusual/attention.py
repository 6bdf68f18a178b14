"""Unusual implementations of attention."""

import math

import torch
from torch import Tensor
from torch.nn import functional

from attentest.faults.unusual.member import function

Mask = Tensor | None
Pair = tuple[Tensor, Tensor | None]


def _weights(scores: Tensor, mask: Mask) -> Tensor:
    hidden = scores if mask is None else scores.masked_fill(~mask, -math.inf)
    return hidden.softmax(dim=-1)


def einsum_attention(query: Tensor, key: Tensor, value: Tensor, mask: Mask = None) -> Pair:
    """Contract by named axes."""
    scores = torch.einsum("bhqe,bhke->bhqk", query, key) / math.sqrt(query.shape[-1])
    weights = _weights(scores, mask)
    return torch.einsum("bhqk,bhkg->bhqg", weights, value), weights


def scaled_query(query: Tensor, key: Tensor, value: Tensor, mask: Mask = None) -> Pair:
    """Scale the query."""
    weights = _weights((query * query.shape[-1] ** -0.5) @ key.mT, mask)
    return weights @ value, weights


def fourth_root(query: Tensor, key: Tensor, value: Tensor, mask: Mask = None) -> Pair:
    """Scale both sides."""
    factor = query.shape[-1] ** -0.25
    weights = _weights((query * factor) @ (key * factor).mT, mask)
    return weights @ value, weights


def additive_mask(query: Tensor, key: Tensor, value: Tensor, mask: Mask = None) -> Pair:
    """Add zero or minus infinity."""
    scores = query @ key.mT / math.sqrt(query.shape[-1])
    if mask is not None:
        bias = torch.zeros(mask.shape, dtype=scores.dtype, device=scores.device)
        scores = scores + bias.masked_fill(mask.logical_not(), -math.inf)
    weights = scores.softmax(dim=-1)
    return weights @ value, weights


def largest_fill(query: Tensor, key: Tensor, value: Tensor, mask: Mask = None) -> Pair:
    """Fill with the lowest finite number; a row without a key becomes a mean."""
    scores = query @ key.mT / math.sqrt(query.shape[-1])
    if mask is not None:
        scores = torch.where(mask, scores, torch.finfo(scores.dtype).min)
    weights = scores.softmax(dim=-1)
    return weights @ value, weights


def head_loop(query: Tensor, key: Tensor, value: Tensor, mask: Mask = None) -> Pair:
    """Take one head at a time."""
    shape = (*query.shape[:-1], key.shape[-2])
    keep = torch.ones(shape, dtype=torch.bool, device=query.device)
    keep = keep if mask is None else mask.expand(shape)
    pairs = [
        scaled_query(query[:, head], key[:, head], value[:, head], keep[:, head])
        for head in range(query.shape[1])
    ]
    weights = torch.stack([pair[1] for pair in pairs if pair[1] is not None], dim=1)
    return torch.stack([pair[0] for pair in pairs], dim=1), weights


def query_loop(query: Tensor, key: Tensor, value: Tensor, mask: Mask = None) -> Pair:
    """Fill one row of the output after another, from the kept keys alone."""
    rows = []
    for place in torch.cartesian_prod(*(torch.arange(size) for size in query.shape[:-1])):
        sample, head, row = place.tolist()
        keys, values = key[sample, head], value[sample, head]
        if mask is not None:
            kept = mask.expand(*query.shape[:-1], key.shape[-2])[sample, head, row]
            keys, values = keys[kept], values[kept]
        scores = keys @ query[sample, head, row] / math.sqrt(query.shape[-1])
        rows.append(scores.softmax(dim=0) @ values)
    return torch.stack(rows).view(*query.shape[:-1], value.shape[-1]), None


def online_softmax(query: Tensor, key: Tensor, value: Tensor, mask: Mask = None) -> Pair:
    """Go through the keys in blocks of two, keeping a running maximum and sum."""
    peak = query.new_full((*query.shape[:-1], 1), -math.inf)
    total, mixed = torch.zeros_like(peak), query.new_zeros(*query.shape[:-1], value.shape[-1])
    whole = (*query.shape[:-1], key.shape[-2])
    for start in range(0, key.shape[-2], 2):
        block = slice(start, start + 2)
        scores = query @ key[..., block, :].mT * query.shape[-1] ** -0.5
        if mask is not None:
            scores = scores.masked_fill(~mask.expand(whole)[..., block], -math.inf)
        higher = torch.maximum(peak, scores.detach().amax(dim=-1, keepdim=True))
        level = torch.where(higher == -math.inf, 0.0, higher)
        powers, shrink = (scores - level).exp(), (peak - level).exp()
        total = total * shrink + powers.sum(dim=-1, keepdim=True)
        mixed = mixed * shrink + powers @ value[..., block, :]
        peak = higher
    return mixed / torch.where(total == 0, 1.0, total), None


def float32_inside(query: Tensor, key: Tensor, value: Tensor, mask: Mask = None) -> Pair:
    """Widen half precision, and round once at the end."""
    given = query.dtype
    wide = torch.promote_types(given, torch.float32)
    output, weights = einsum_attention(query.to(wide), key.to(wide), value.to(wide), mask)
    return output.to(given), None if weights is None else weights.to(given)


def library_kernel(query: Tensor, key: Tensor, value: Tensor, mask: Mask = None) -> Pair:
    """Call the function of torch."""
    return functional.scaled_dot_product_attention(query, key, value, attn_mask=mask), None


def log_weights(query: Tensor, key: Tensor, value: Tensor, mask: Mask = None) -> Pair:
    """Take the logarithm of the softmax, and its exponential."""
    scores = query @ key.mT / math.sqrt(query.shape[-1])
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf)
    weights = scores.log_softmax(dim=-1).exp()
    return weights @ value, weights


def sequence_first(query: Tensor, key: Tensor, value: Tensor, mask: Mask = None) -> Pair:
    """Work on (Q, B * H, E), as in torch's oldest code."""
    batch, heads, queries, width = query.shape
    asks, keys, values = (
        one.permute(2, 0, 1, 3).reshape(one.shape[2], batch * heads, one.shape[3])
        for one in (query, key, value)
    )
    scores = torch.bmm(asks.transpose(0, 1), keys.permute(1, 2, 0)) / math.sqrt(width)
    whole = (batch, heads, queries, key.shape[2])
    keep = None if mask is None else mask.expand(whole).flatten(0, 1)
    weights = _weights(scores, keep)
    mixed = torch.bmm(weights, values.transpose(0, 1))
    return mixed.view(batch, heads, queries, -1), weights.view(whole)


_MEMBERS = {
    einsum_attention: "attention by two einsums",
    scaled_query: "attention with the query scaled before the product, and not the scores",
    fourth_root: "attention with query and key each scaled by a fourth root",
    additive_mask: "attention with a mask that is added, 0 or minus infinity",
    head_loop: "attention in a loop over heads, on inputs of three axes",
    query_loop: "attention in a loop over single queries that drops masked keys beforehand",
    log_weights: "attention with weights as exponentials of a log-softmax",
    float32_inside: "attention that computes in float32 where half precision comes in",
    library_kernel: "attention by torch's own kernel, without weights",
    sequence_first: "attention with the sequence first and heads merged into the batch",
}
MEMBERS = (
    *(function("attention", odd, title) for odd, title in _MEMBERS.items()),
    function(
        "attention",
        online_softmax,
        "attention over blocks of two keys with a running softmax; zeros for rows without a key",
        fully_masked_row="zero",
    ),
    function(
        "attention",
        largest_fill,
        "attention with the lowest finite number as fill; the mean of all values at empty rows",
        fully_masked_row="uniform",
    ),
)
