"""Unusual implementations of the choices inside attention."""

import math

import torch
from torch import Tensor, nn

from attentest.faults.unusual.member import function, module
from attentest.faults.unusual.multi_head_attention import NAMES, checked, heads_apart
from attentest_spec import Sizes

Mask = Tensor | None
Pair = tuple[Tensor, Tensor | None]
CAP, SCALE = 1.5, 0.4


def _hide(scores: Tensor, mask: Mask) -> Tensor:
    return scores if mask is None else scores.masked_fill(~mask, -math.inf)


def cap_by_sigmoid(query: Tensor, key: Tensor, value: Tensor, mask: Mask = None) -> Pair:
    """Write c tanh(s / c) as 2 c sigmoid(2 s / c) - c, without the part that is equal for all."""
    scores = query @ key.mT / math.sqrt(query.shape[-1])
    weights = _hide(2 * CAP * torch.sigmoid(2 * scores / CAP), mask).softmax(dim=-1)
    return weights @ value, weights


def scale_on_both_sides(query: Tensor, key: Tensor, value: Tensor, mask: Mask = None) -> Pair:
    """Multiply query and key by the root of the scale."""
    factor = SCALE**0.5
    weights = _hide((query * factor) @ (key * factor).mT, mask).softmax(dim=-1)
    return weights @ value, weights


class WindowByWindow(nn.Module):
    """One query at a time, with the keys of its window, turned by its distance from them."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        width, self.heads, self.window = checked(sizes), sizes.heads, sizes.window
        self.maps = nn.ModuleDict({name: nn.Linear(width, width, bias=False) for name in NAMES})

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        mask: Mask = None,
        positions: Tensor | None = None,
    ) -> Tensor:
        """Return (B, L, D); the last of the keys is the token of the last query."""
        asks, keys, values = (
            heads_apart(self.maps[name](one), self.heads)
            for name, one in zip(NAMES, (query, key, value), strict=False)
        )
        shape = (*asks.shape[:3], keys.shape[2])
        keep = None if mask is None else mask.expand(shape)
        length, ahead = keys.shape[2], keys.shape[2] - asks.shape[2]
        places = torch.arange(length, device=query.device)[None] if positions is None else positions
        rows = []
        for number in range(asks.shape[2]):
            last = number + ahead
            near = slice(max(last + 1 - self.window, 0), last + 1)
            distance = places[:, near] - places[:, last : last + 1]
            turned = self._turned(keys[:, :, near], distance[:, None])
            scores = torch.einsum("bhe,bhke->bhk", asks[:, :, number], turned)
            seen = None if keep is None else keep[:, :, number, near]
            weights = _hide(scores / math.sqrt(asks.shape[-1]), seen).softmax(dim=-1)
            rows.append(torch.einsum("bhk,bhke->bhe", weights, values[:, :, near]))
        output: Tensor = self.maps["output"](torch.stack(rows, dim=2).transpose(1, 2).flatten(2))
        return output

    def _turned(self, x: Tensor, places: Tensor) -> Tensor:
        """Turn the halves of x (B, H, K, E) by angles of places (B, 1, K)."""
        width = x.shape[-1]
        powers = torch.arange(0, width, 2, device=x.device, dtype=torch.float64) / width
        angles = places[..., None].double() * 10_000.0**-powers
        cosines, sines = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
        a, b = x.chunk(2, dim=-1)
        return torch.cat((a * cosines - b * sines, b * cosines + a * sines), dim=-1)


class WithSink(nn.Module):
    """The parameters of attention with a sink in every head, and its projections."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        width, self.heads = checked(sizes), sizes.heads
        self.maps = nn.ModuleDict({name: nn.Linear(width, width, bias=False) for name in NAMES})
        self.sink = nn.Parameter(torch.randn(sizes.heads))

    def of_heads(self, *inputs: Tensor) -> list[Tensor]:
        """Return query, key and value, each (B, L, D), projected and apart as (B, H, L, E)."""
        return [
            heads_apart(self.maps[name](one), self.heads)
            for name, one in zip(NAMES, inputs, strict=False)
        ]


class SinkAsKey(WithSink):
    """The sink is a key of zeros with a bias of its score, whose value is zero."""

    def forward(self, query: Tensor, key: Tensor, value: Tensor, mask: Mask = None) -> Tensor:
        """Return (B, L, D) by one call of attention with a key more and an additive mask."""
        asks, keys, values = self.of_heads(query, key, value)
        shape = (*asks.shape[:3], keys.shape[2])
        keep = asks.new_ones(shape, dtype=torch.bool) if mask is None else mask.expand(shape)
        bias = asks.new_zeros(shape).masked_fill(~keep, -math.inf)
        nothing = self.sink[:, None, None].expand(*shape[:3], 1)
        bias = torch.cat([nothing, bias], dim=-1)
        keys, values = (nn.functional.pad(one, (0, 0, 1, 0)) for one in (keys, values))
        found = nn.functional.scaled_dot_product_attention(asks, keys, values, attn_mask=bias)
        output: Tensor = self.maps["output"](found.transpose(1, 2).flatten(2))
        return output


class SinkByBlocks(WithSink):
    """One key at a time: the running sum of powers begins with that of the sink."""

    def forward(self, query: Tensor, key: Tensor, value: Tensor, mask: Mask = None) -> Tensor:
        """Return (B, L, D), without a row of weights at any time."""
        asks, keys, values = self.of_heads(query, key, value)
        shape = (*asks.shape[:3], keys.shape[2])
        keep = None if mask is None else mask.expand(shape)
        peak = self.sink[:, None, None].expand(*shape[:3], 1)
        total, context = torch.ones_like(peak), torch.zeros_like(asks)
        for number in range(keys.shape[2]):
            one = slice(number, number + 1)
            scores = asks @ keys[:, :, one].mT / math.sqrt(asks.shape[-1])
            scores = _hide(scores, None if keep is None else keep[..., one])
            higher = torch.maximum(peak, scores)
            fade, power = (peak - higher).exp(), (scores - higher).exp()
            total, context = total * fade + power, context * fade + power * values[:, :, one]
            peak = higher
        output: Tensor = self.maps["output"]((context / total).transpose(1, 2).flatten(2))
        return output


MEMBERS = (
    module(
        "multi_head_attention",
        SinkAsKey,
        "multi-head attention whose sink is a key of zeros in the fused function of torch",
        {**{name: f"maps.{name}" for name in NAMES}, "sink.score": "sink"},
        attention_sink="per-head",
    ),
    module(
        "multi_head_attention",
        SinkByBlocks,
        "multi-head attention that adds one key after the other to the sink",
        {**{name: f"maps.{name}" for name in NAMES}, "sink.score": "sink"},
        attention_sink="per-head",
    ),
    function(
        "attention",
        cap_by_sigmoid,
        "attention with a soft cap by a sigmoid, all scores off by one number",
        score_cap=CAP,
    ),
    function(
        "attention",
        scale_on_both_sides,
        "attention with the root of a declared scale on query and key",
        score_scale=SCALE,
    ),
    module(
        "multi_head_attention",
        WindowByWindow,
        "multi-head attention with a window that turns the keys by their distance to each query",
        {name: f"maps.{name}" for name in NAMES},
        attention_rotary="query-and-key",
        rotary_pairs="halves",
        attention_causality="built-in",
        attention_window="with-query",
        query_alignment="end",
    ),
)
