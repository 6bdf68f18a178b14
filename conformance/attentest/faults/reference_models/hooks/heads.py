"""The hooks of attention in several heads."""

from abc import abstractmethod

from torch import Tensor

from attentest.faults.reference_models.hooks.attention import Mask
from attentest.faults.reference_models.hooks.order import OrderHooks
from attentest.faults.reference_models.modules import Node


class MultiHeadHooks(OrderHooks):
    """Attention in several heads: projections, split and merge."""

    @abstractmethod
    def make_multi_head_attention(self) -> Node:
        """Build the four projections."""

    def multi_head_attention(
        self,
        module: Node,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        mask: Mask = None,
        positions: Tensor | None = None,
    ) -> Tensor:
        """Project, split into heads, attend, merge and project (B, Q, D)."""
        queries, keys, values = (
            self.split_heads(self.project(module, name, x))
            for name, x in (("query", query), ("key", key), ("value", value))
        )
        queries, keys = self.place_heads(module, queries, keys, positions)
        own = self.own_window(self.own_causality(mask, query, key), query, key)
        kept = self.head_mask(own, query.shape[0], query.shape[1], key.shape[1])
        keys, values = (self.share_heads(one) for one in (keys, values))
        context, _ = self.attention(module, queries, keys, values, kept)
        return self.project(module, "output", self.merge_heads(context))

    def share_heads(self, x: Tensor) -> Tensor:
        """Return keys or values (B, G, K, E) as (B, H, K, E), each head several times in a row."""
        times = self.sizes.heads // x.shape[1]
        return x if times == 1 else self.repeat_heads(x, times)

    @abstractmethod
    def repeat_heads(self, x: Tensor, times: int) -> Tensor:
        """Return x (B, G, K, E) with every head `times` times in a row."""

    @abstractmethod
    def project(self, module: Node, name: str, x: Tensor) -> Tensor:
        """Apply the projection `name`: query, key, value or output."""

    @abstractmethod
    def split_heads(self, x: Tensor) -> Tensor:
        """Return (B, L, H * E) as (B, H, L, E)."""

    @abstractmethod
    def merge_heads(self, x: Tensor) -> Tensor:
        """Return (B, H, L, E) as (B, L, H * E)."""

    @abstractmethod
    def head_mask(self, mask: Mask, batch: int, queries: int, keys: int) -> Mask:
        """Return the mask as attention in heads takes it, broadcastable to (B, H, Q, K)."""
