"""The hooks of attention that depend on the order of queries and keys, and of their norms."""

import copy
from abc import abstractmethod
from typing import Self

import torch
from torch import Tensor

from attentest.faults.reference_models.hooks.attention import AttentionHooks, Mask
from attentest.faults.reference_models.hooks.rotary import RotaryHooks
from attentest.faults.reference_models.hooks.sublayers import RmsHooks
from attentest.faults.reference_models.modules import Node
from attentest_spec.order import ordered, unordered
from attentest_spec.parameters import key_heads


class OrderHooks(AttentionHooks, RmsHooks, RotaryHooks):
    """Norms and positions of queries and keys, what attention hides by itself, and its bias."""

    def head_width(self) -> int:
        """Return the width of one head."""
        width, heads = self.sizes.d_model, self.sizes.heads
        return width if self.choices.head_width == "d" else width // heads

    def key_heads(self) -> int:
        """Return the number of heads of keys and values."""
        return key_heads(self.sizes, self.choices)

    def placing_parts(self) -> dict[str, Node]:
        """Build what multi-head attention holds besides its projections."""
        parts = {}
        if self.choices.query_key_norm in ("per-head", "whole-projection"):
            for name, heads in (("query_norm", self.sizes.heads), ("key_norm", self.key_heads())):
                whole = self.choices.query_key_norm == "whole-projection"
                parts[name] = self.make_norm_of_rows(self.head_width() * (heads if whole else 1))
        if self.choices.attention_rotary != "none":
            parts["rotary"] = self.make_rotary()
        if self.choices.attention_sink == "per-head":
            parts["sink"] = self.make_sink()
        if self.choices.relative_bias.startswith("buckets"):
            parts["relative_bias"] = self.make_bias()
        return parts

    def place_heads(
        self, module: Node, query: Tensor, key: Tensor, positions: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """Return queries (B, H, Q, E) and keys (B, G, K, E), normalised and turned as declared."""
        late = self.norms_after_turns()
        if not late:
            query, key = self.norm_heads(module, query, key)
        if self.choices.attention_rotary != "none":
            query, key = self.turn_heads(module, query, key, positions)
        return self.norm_heads(module, query, key) if late else (query, key)

    def norms_after_turns(self) -> bool:
        """Say whether queries and keys are turned before they are normalised."""
        return self.choices.query_key_norm_place == "after-rotation"

    def norm_heads(self, module: Node, query: Tensor, key: Tensor) -> tuple[Tensor, Tensor]:
        """Return queries and keys, normalised."""
        return self.norm_of_heads(module, "query", query), self.norm_of_heads(module, "key", key)

    def norm_of_heads(self, module: Node, name: str, x: Tensor) -> Tensor:
        """Return x (B, H, L, E), the queries or the keys, normalised as declared."""
        match self.choices.query_key_norm:
            case "none":
                return x
            case "unit-length":
                return self.unit_heads(x)
            case "per-head":
                return self.rms_norm(getattr(module, f"{name}_norm"), x)
            case _:
                return self.norm_of_projection(getattr(module, f"{name}_norm"), x)

    def norm_of_projection(self, norm: Node, x: Tensor) -> Tensor:
        """Return x (B, H, L, E), normalised over all heads of a token together."""
        whole = self.rms_norm(norm, x.transpose(1, 2).flatten(2))
        return whole.view(*whole.shape[:2], x.shape[1], x.shape[3]).transpose(1, 2)

    @abstractmethod
    def unit_heads(self, x: Tensor) -> Tensor:
        """Return x (B, H, L, E), every head divided by its length."""

    def turn_heads(
        self, module: Node, query: Tensor, key: Tensor, positions: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """Turn queries and keys by the angles of one table."""
        self.check_turned(key.shape[-1])
        queries, keys = query.shape[2], key.shape[2]
        own = self.query_places(queries, keys, key.device)
        places = self.places_of_tokens(max(queries, keys), positions, key)
        cosines, sines = self.turn_tables(module.rotary, places, key)
        turned = self.turn(query, cosines[:, own], sines[:, own])
        return turned, self.turn(key, cosines[:, :keys], sines[:, :keys])

    def places_of_tokens(self, length: int, positions: Tensor | None, x: Tensor) -> Tensor:
        """Return the positions (B, L) or (1, L) of all tokens, in float64."""
        if positions is None:
            return torch.arange(length, dtype=torch.float64, device=x.device)[None]
        return positions.to(torch.float64)

    def query_places(self, queries: int, keys: int, device: torch.device) -> Tensor:
        """Return the number (Q) of the key of the same token, for each query."""
        return self.first_query(queries, keys) + torch.arange(queries, device=device)

    def first_query(self, queries: int, keys: int) -> int:
        """Return the number of the key of the first query; a step with a cache has the last."""
        return 0 if self.choices.query_alignment == "start" else max(keys - queries, 0)

    def own_causality(self, mask: Mask, query: Tensor, key: Tensor) -> Mask:
        """Return the mask without later keys, where attention hides them by itself."""
        if self.choices.attention_causality == "by-mask":
            return mask
        earlier = self.earlier(query.shape[1], key.shape[1], query.device)
        return earlier if mask is None else mask & earlier

    def earlier(self, queries: int, keys: int, device: torch.device) -> Tensor:
        """Return (1, 1, Q, K): every key that does not come after its query."""
        return self.keys_ahead(queries, keys, device)[None, None] <= 0

    def own_window(self, mask: Mask, query: Tensor, key: Tensor) -> Mask:
        """Return the mask without keys outside of the window, where there is one."""
        if self.choices.attention_window == "none":
            return mask
        near = self.window(query.shape[1], key.shape[1], query.device)
        return near if mask is None else mask & near

    def window(self, queries: int, keys: int, device: torch.device) -> Tensor:
        """Return (1, 1, Q, K): every key that is inside of the window of its query."""
        near: Tensor = self.keys_ahead(queries, keys, device).abs() <= self.window_reach()
        return near[None, None]

    def window_reach(self) -> int:
        """Return how far away the furthest key is that a query sees."""
        return self.sizes.window - (self.choices.attention_window == "with-query")

    def keys_ahead(self, queries: int, keys: int, device: torch.device) -> Tensor:
        """Return (Q, K): by how much each key comes after each query."""
        numbers = torch.arange(keys, device=device)
        return numbers - self.query_places(queries, keys, device)[:, None]

    def without_own_causality(self) -> Self:
        """Return the hooks for the attention to a memory, which has no order of its own."""
        if not ordered(self.choices):
            return self
        other = copy.copy(self)
        other.choices = unordered(self.choices)
        return other

    @abstractmethod
    def make_sink(self) -> Node:
        """Build the scores of nothing, one for each head."""

    def weigh_keys(self, module: Node, raw: Tensor) -> Tensor:
        """Return the weights of the keys (B, H, Q, K), which sum to less than 1 with a sink."""
        if self.choices.attention_sink == "none" or module.step == "attention":
            return self.weigh(raw)
        return self.weigh_with_sink(raw, self.sink_scores(module).to(raw.dtype))

    @abstractmethod
    def sink_scores(self, module: Node) -> Tensor:
        """Return the scores of nothing, (H, 1, 1)."""

    @abstractmethod
    def weigh_with_sink(self, raw: Tensor, sink: Tensor) -> Tensor:
        """Return the weights of the keys under scores (B, H, Q, K) and sinks (H, 1, 1)."""

    @abstractmethod
    def make_bias(self) -> Node:
        """Build the numbers of all buckets and heads."""

    def bias_scores(self, module: Node, raw: Tensor) -> Tensor:
        """Return the scores (B, H, Q, K) with the bias by distance, where there is one."""
        if self.choices.relative_bias == "none" or module.step == "attention":
            return raw
        return raw + self.bias_of(module, raw.shape[2], raw.shape[3], raw)

    def bias_of(self, module: Node, queries: int, keys: int, raw: Tensor) -> Tensor:
        """Return the bias (H, Q, K) in the precision of the scores."""
        ahead = self.keys_ahead(queries, keys, raw.device)
        if self.choices.relative_bias.startswith("alibi"):
            slopes = self.bias_slopes(self.sizes.heads).to(raw.device)
            return self.slope_bias(slopes, ahead).to(raw.dtype)
        return self.bucket_bias(module, self.bias_buckets(ahead))

    def bias_slopes(self, heads: int) -> Tensor:
        """Return the slopes (H) of all heads, in float64."""
        whole = 2 ** (heads.bit_length() - 1)
        if self.choices.relative_bias == "alibi-geometric" or whole == heads:
            return self.geometric_slopes(heads)
        more = self.geometric_slopes(2 * whole)[::2]
        return torch.cat([self.geometric_slopes(whole), more[: heads - whole]])

    @abstractmethod
    def geometric_slopes(self, heads: int) -> Tensor:
        """Return the slopes (H) of a number of heads that is a power of two, in float64."""

    def slope_bias(self, slopes: Tensor, ahead: Tensor) -> Tensor:
        """Return the bias (H, Q, K) of slopes (H), for keys that are `ahead` (Q, K)."""
        return -slopes[:, None, None] * ahead.abs()

    def bias_buckets(self, ahead: Tensor) -> Tensor:
        """Return the bucket (Q, K) of every distance."""
        count, both = self.sizes.bias_buckets, self.choices.relative_bias == "buckets"
        own = count // 2 if both else count
        later = torch.where(ahead > 0, own, 0) if both else torch.zeros_like(ahead)
        distance = ahead.abs() if both else (-ahead).clamp(min=0)
        return later + self.bucket_of(distance, own)

    @abstractmethod
    def bucket_of(self, distance: Tensor, count: int) -> Tensor:
        """Return the bucket (Q, K) of distances that are not negative, of `count` buckets."""

    @abstractmethod
    def bucket_bias(self, module: Node, buckets: Tensor) -> Tensor:
        """Return the bias (H, Q, K) of buckets (Q, K)."""
