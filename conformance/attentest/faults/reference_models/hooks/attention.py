"""The hooks of attention, plain and with heads."""

from abc import abstractmethod

from torch import Tensor

from attentest.faults.reference_models.hooks.base import Base
from attentest.faults.reference_models.modules import Node

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
        bounded = self.bound_scores(self.scores(query, key, factor))
        raw = self.mask_scores(self.bias_scores(module, bounded), mask)
        weights = self.empty_rows(self.weigh_keys(module, raw), mask)
        used = self.drop_weights(module, weights)
        return self.mix(used, value), self.returned_weights(raw, weights, used)

    def key_width(self, query: Tensor, key: Tensor, value: Tensor) -> int:
        """Return d_k, the width whose root the scores are divided by."""
        return query.shape[-1]

    def scale(self, width: int, heads: int) -> float:
        """Return the factor of the scores for keys of `width`."""
        declared = self.choices.score_scale
        return float(width**-0.5) if declared == "inverse-sqrt-e" else float(declared)

    @abstractmethod
    def scores(self, query: Tensor, key: Tensor, factor: float) -> Tensor:
        """Return the products (B, H, Q, K) of queries and keys, times `factor`."""

    def bound_scores(self, raw: Tensor) -> Tensor:
        """Return the scores, softly bounded where that is declared."""
        declared = self.choices.score_cap
        return raw if declared == "none" else self.cap_scores(raw, float(declared))

    @abstractmethod
    def cap_scores(self, raw: Tensor, cap: float) -> Tensor:
        """Return the scores bounded softly by `cap`."""

    def bias_scores(self, module: Node, raw: Tensor) -> Tensor:
        """Return the scores with a bias by distance, which attention alone has not."""
        return raw

    @abstractmethod
    def mask_scores(self, raw: Tensor, mask: Mask) -> Tensor:
        """Return the scores with those of masked keys filled in."""

    def weigh_keys(self, module: Node, raw: Tensor) -> Tensor:
        """Return the weights of the keys; `module` may hold a score of nothing."""
        return self.weigh(raw)

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
