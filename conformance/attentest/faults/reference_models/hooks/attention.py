"""The hooks of attention, plain and with heads."""

import copy
from abc import abstractmethod
from typing import Self

import torch
from torch import Tensor

from attentest.faults.reference_models.hooks.base import Base
from attentest.faults.reference_models.modules import Node
from attentest_spec.parameters import key_heads

Mask = Tensor | None
Answer = tuple[Tensor, Tensor]


class AttentionHooks(Base):
    """Scaled dot-product attention, step by step."""

    def make_attention(self) -> Node:
        """Build attention alone; it only has a mode."""
        self.check_sizes()
        return Node(self, "attention")

    def attention(
        self, module: Node, query: Tensor, key: Tensor, value: Tensor, mask: Mask = None
    ) -> Answer:
        """Return the output (B, H, Q, G) and the weights (B, H, Q, K); `module` gives the mode."""
        factor = self.scale(self.key_width(query, key, value), query.shape[1])
        raw = self.mask_scores(self.scores(query, key, factor), mask)
        weights = self.empty_rows(self.weigh(raw), mask)
        used = self.drop_weights(module, weights)
        return self.mix(used, value), self.returned_weights(raw, weights, used)

    def key_width(self, query: Tensor, key: Tensor, value: Tensor) -> int:
        """Return d_k, the width whose root the scores are divided by."""
        return query.shape[-1]

    def scale(self, width: int, heads: int) -> float:
        """Return the factor of the scores for keys of `width`."""
        return float(width**-0.5)

    @abstractmethod
    def scores(self, query: Tensor, key: Tensor, factor: float) -> Tensor:
        """Return the products (B, H, Q, K) of queries and keys, times `factor`."""

    @abstractmethod
    def mask_scores(self, raw: Tensor, mask: Mask) -> Tensor:
        """Return the scores with those of masked keys filled in."""

    def weigh(self, raw: Tensor) -> Tensor:
        """Return the softmax of the scores in the precision that is chosen, in that of the call."""
        if self.choices.softmax_arithmetic == "as-computed":
            return self.softmax(raw)
        return self.softmax(raw.float()).to(raw.dtype)

    @abstractmethod
    def softmax(self, scores: Tensor) -> Tensor:
        """Return weights that are positive and sum to 1 over the keys."""

    @abstractmethod
    def empty_rows(self, weights: Tensor, mask: Mask) -> Tensor:
        """Return the weights with the rows that keep no key as declared."""

    def drop_weights(self, module: Node, weights: Tensor) -> Tensor:
        """Apply dropout to the weights."""
        return self.dropout(module, weights)

    @abstractmethod
    def mix(self, weights: Tensor, value: Tensor) -> Tensor:
        """Return the mean of the values under the weights."""

    def returned_weights(self, raw: Tensor, weights: Tensor, used: Tensor) -> Tensor:
        """Return the weights that accompany the output: those that were used."""
        return used


class MultiHeadHooks(AttentionHooks):
    """Attention in several heads: projections, split and merge."""

    def head_width(self) -> int:
        """Return the width of one head."""
        width, heads = self.sizes.d_model, self.sizes.heads
        return width if self.choices.head_width == "d" else width // heads

    @abstractmethod
    def make_multi_head_attention(self) -> Node:
        """Build the four projections."""

    def multi_head_attention(
        self, module: Node, query: Tensor, key: Tensor, value: Tensor, mask: Mask = None
    ) -> Tensor:
        """Project, split into heads, attend, merge and project (B, Q, D)."""
        heads = [
            self.split_heads(self.project(module, name, x))
            for name, x in (("query", query), ("key", key), ("value", value))
        ]
        own = self.own_causality(mask, query, key)
        kept = self.head_mask(own, query.shape[0], query.shape[1], key.shape[1])
        keys, values = (self.share_heads(one) for one in heads[1:])
        context, _ = self.attention(module, heads[0], keys, values, kept)
        return self.project(module, "output", self.merge_heads(context))

    def own_causality(self, mask: Mask, query: Tensor, key: Tensor) -> Mask:
        """Return the mask without later keys, where attention hides them by itself."""
        if self.choices.attention_causality == "by-mask":
            return mask
        earlier = self.earlier(query.shape[1], key.shape[1], query.device)
        return earlier if mask is None else mask & earlier

    def without_own_causality(self) -> Self:
        """Return the hooks for the attention to a memory, which hides no key by itself."""
        if self.choices.attention_causality == "by-mask":
            return self
        other = copy.copy(self)
        other.choices = self.choices.but(attention_causality="by-mask")
        return other

    def earlier(self, queries: int, keys: int, device: torch.device) -> Tensor:
        """Return (1, 1, Q, K): every key that does not come after its query."""
        ones = torch.ones(queries, keys, dtype=torch.bool, device=device)
        return ones.tril()[None, None]

    def key_heads(self) -> int:
        """Return the number of heads of keys and values."""
        return key_heads(self.sizes, self.choices)

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
