"""Unusual implementations of multi-head attention, most in how they hold parameters."""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from attentest.faults.unusual.member import module
from attentest_spec import Place, Sizes, Table

Mask = Tensor | None
NAMES = ("query", "key", "value", "output")


def checked(sizes: Sizes) -> int:
    """Return the model width; refuse one that the heads cannot share."""
    if sizes.heads < 1 or sizes.d_model % sizes.heads:
        raise ValueError(f"A width of {sizes.d_model} cannot be shared by {sizes.heads} heads.")
    return sizes.d_model


def random(*shape: int) -> nn.Parameter:
    """Return a trained weight with random numbers in it."""
    return nn.Parameter(torch.randn(shape) / math.sqrt(shape[-1]))


def heads_apart(x: Tensor, heads: int) -> Tensor:
    """Return (B, L, H * E) as (B, H, L, E)."""
    return x.reshape(*x.shape[:2], heads, x.shape[2] // heads).transpose(1, 2)


def rows_of_heads(weight: Tensor, heads: int) -> Tensor:
    """Return (H * E, D) as (H, E, D)."""
    return weight.reshape(heads, weight.shape[0] // heads, weight.shape[1])


def attend(query: Tensor, key: Tensor, value: Tensor, mask: Mask, heads: int) -> Tensor:
    """Return the merged heads (B, Q, D) for projected inputs."""
    asks, keys, values = (heads_apart(one, heads) for one in (query, key, value))
    mixed = functional.scaled_dot_product_attention(asks, keys, values, attn_mask=mask)
    return mixed.transpose(1, 2).flatten(2)


class PackedProjections(nn.Module):
    """One packed weight; self-attention takes one product, anything else three."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        width, self.heads = checked(sizes), sizes.heads
        self.packed = random(3 * width, width)
        self.offsets = nn.Parameter(torch.zeros(3 * width))
        self.out = nn.Linear(width, width)

    def forward(self, query: Tensor, key: Tensor, value: Tensor, mask: Mask = None) -> Tensor:
        """Return (B, Q, D)."""
        if query is key and key is value:
            asks, keys, values = functional.linear(query, self.packed, self.offsets).chunk(3, -1)
        else:
            pairs = zip(self.packed.chunk(3), self.offsets.chunk(3), strict=True)
            asks, keys, values = (
                functional.linear(one, weight, bias)
                for one, (weight, bias) in zip((query, key, value), pairs, strict=True)
            )
        mixed = attend(asks, keys, values, mask, self.heads)
        return functional.linear(mixed, self.out.weight, self.out.bias)


class HeadByHead(nn.Module):
    """Every head is projected, mixed and mapped to the output alone; nothing is concatenated."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        width, self.heads = checked(sizes), sizes.heads
        self.maps = nn.ParameterList(random(width, width) for _ in NAMES)

    def forward(self, query: Tensor, key: Tensor, value: Tensor, mask: Mask = None) -> Tensor:
        """Return (B, Q, D)."""
        total = torch.zeros_like(query)
        weights = [rows_of_heads(self.maps[number], self.heads) for number in range(3)]
        outward = rows_of_heads(self.maps[3].T, self.heads)
        for head in range(self.heads):
            asks, keys, values = (
                one @ weight[head].mT
                for one, weight in zip((query, key, value), weights, strict=True)
            )
            scores = torch.baddbmm(
                scores_like(asks, keys), asks, keys.mT, alpha=keys.shape[-1] ** -0.5, beta=0
            )
            if mask is not None:
                own = mask[:, head if mask.shape[1] > 1 else 0]
                scores = scores.masked_fill(~own, -math.inf)
            total = total + scores.softmax(dim=-1) @ values @ outward[head]
        return total


def scores_like(query: Tensor, key: Tensor) -> Tensor:
    """Return zeros (B, Q, K)."""
    return query.new_zeros(query.shape[0], query.shape[1], key.shape[1])


class TransposedWeights(nn.Module):
    """Weights lie as (in, out) and are multiplied from the right."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        width, self.heads = checked(sizes), sizes.heads
        self.wq, self.wk, self.wv, self.wo = (random(width, width) for _ in NAMES)

    def forward(self, query: Tensor, key: Tensor, value: Tensor, mask: Mask = None) -> Tensor:
        """Return (B, Q, D)."""
        projected = query @ self.wq, key @ self.wk, value @ self.wv
        return attend(*projected, mask, self.heads) @ self.wo


class ParameterDictionary(nn.Module):
    """A dictionary of parameters and a function of it."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        width, self.heads = checked(sizes), sizes.heads
        weights = {f"{name}_weight": random(width, width) for name in NAMES}
        biases = {f"{name}_bias": random(width) for name in NAMES}
        self.held = nn.ParameterDict(weights | biases)

    def forward(self, query: Tensor, key: Tensor, value: Tensor, mask: Mask = None) -> Tensor:
        """Return (B, Q, D)."""

        def linear(name: str, x: Tensor) -> Tensor:
            return torch.einsum("bld,ed->ble", x, self.held[f"{name}_weight"]).add(
                self.held[f"{name}_bias"]
            )

        projected = (linear("query", query), linear("key", key), linear("value", value))
        return linear("output", attend(*projected, mask, self.heads))


class MergedKeyValue(nn.Module):
    """Key and value share one weight, so that memory is projected once."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        width, self.heads = checked(sizes), sizes.heads
        self.to_query = nn.Linear(width, width, bias=False)
        self.to_both = nn.Linear(width, 2 * width, bias=False)
        self.back = nn.Linear(width, width, bias=False)

    def forward(self, query: Tensor, key: Tensor, value: Tensor, mask: Mask = None) -> Tensor:
        """Return (B, Q, D); all of both products is computed, and half of each thrown away."""
        keys, values = self.to_both(key).chunk(2, -1)[0], self.to_both(value).chunk(2, -1)[1]
        return self.back.forward(attend(self.to_query(query), keys, values, mask, self.heads))


class FoldedWeights(nn.Module):
    """Query and key weights are multiplied first, and so are those of value and output."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        width, self.heads = checked(sizes), sizes.heads
        self.q, self.k, self.v, self.o = (random(width, width) for _ in NAMES)

    def forward(self, query: Tensor, key: Tensor, value: Tensor, mask: Mask = None) -> Tensor:
        """Return (B, Q, D)."""
        asks, keys, values = (rows_of_heads(one, self.heads) for one in (self.q, self.k, self.v))
        folded = asks.mT @ keys / math.sqrt(asks.shape[1])
        outward = rows_of_heads(self.o.T, self.heads)
        scores = torch.einsum("bqi,hij,bkj->bhqk", query, folded, key)
        if mask is not None:
            scores = scores.masked_fill(~mask, -math.inf)
        whole = values.mT @ outward
        return torch.einsum("bhqk,bkd,hde->bqe", scores.softmax(dim=-1), value, whole)


class LibraryModule(nn.Module):
    """torch's module with the sequence first and the polarity of the mask inverted."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        self.inner = nn.MultiheadAttention(checked(sizes), sizes.heads, bias=False)

    def forward(self, query: Tensor, key: Tensor, value: Tensor, mask: Mask = None) -> Tensor:
        """Return (B, Q, D)."""
        hide = None
        if mask is not None:
            shape = (query.shape[0], self.inner.num_heads, query.shape[1], key.shape[1])
            hide = ~mask.expand(shape).flatten(0, 1)
        first = (one.transpose(0, 1) for one in (query, key, value))
        output: Tensor = self.inner(*first, attn_mask=hide, need_weights=False)[0]
        return output.transpose(0, 1)


def _packed(name: str, own: str, count: int = 3) -> Table:
    return {f"{one}.{name}": Place(own, part=(n, count)) for n, one in enumerate(NAMES[:count])}


_SHORT = {f"{name}.weight": name[0] for name in NAMES}
MEMBERS = (
    module(
        "multi_head_attention",
        PackedProjections,
        "multi-head attention with one packed weight and bias for three projections",
        {**_packed("weight", "packed"), **_packed("bias", "offsets"), "output": "out"},
        projection_bias="present",
    ),
    module(
        "multi_head_attention",
        HeadByHead,
        "multi-head attention that sums the heads' own shares of the output",
        {f"{name}.weight": f"maps.{number}" for number, name in enumerate(NAMES)},
    ),
    module(
        "multi_head_attention",
        TransposedWeights,
        "multi-head attention with weights stored as (in, out)",
        {f"{name}.weight": Place(f"w{name[0]}", transpose=True) for name in NAMES},
    ),
    module(
        "multi_head_attention",
        ParameterDictionary,
        "multi-head attention as a function of a dictionary of parameters, biases included",
        {f"{one}.{kind}": f"held.{one}_{kind}" for one in NAMES for kind in ("weight", "bias")},
        projection_bias="present",
    ),
    module(
        "multi_head_attention",
        MergedKeyValue,
        "multi-head attention with one weight for key and value",
        {
            "query": "to_query",
            "key.weight": Place("to_both.weight", part=(0, 2)),
            "value.weight": Place("to_both.weight", part=(1, 2)),
            "output": "back",
        },
    ),
    module(
        "multi_head_attention",
        FoldedWeights,
        "multi-head attention that multiplies weights before inputs are seen",
        _SHORT,
    ),
    module(
        "multi_head_attention",
        LibraryModule,
        "torch's multi-head attention, sequence first, with the mask inverted",
        {**_packed("weight", "inner.in_proj_weight"), "output": "inner.out_proj"},
    ),
)
