"""Faults in the softmax, from scores to weights."""

import math

import torch
from torch import Tensor

from attentest.faults.fault import fault
from attentest.faults.reference_models import Answer, Hooks, Mask, Node


@fault("attention.softmax-base-two", "weights-formula", seam="softmax")
def softmax_base_two(self: Hooks, scores: Tensor) -> Tensor:
    """The softmax takes powers of 2, not of e. Attention is too flat by a factor of 0.69."""
    return self.correct.softmax(scores * math.log(2.0))


@fault("attention.softmax-temperature", "weights-formula", seam="softmax")
def softmax_temperature(self: Hooks, scores: Tensor) -> Tensor:
    """A temperature of 1.01 is left in the softmax.

    Weights are one percent too flat in the scores: no loss curve shows it.
    """
    return self.correct.softmax(scores / 1.01)


@fault("attention.masked-after-softmax", "rows-sum-to-one", seam="attention", origin="B006")
def masked_after_softmax(
    self: Hooks, module: Node, query: Tensor, key: Tensor, value: Tensor, mask: Mask = None
) -> Answer:
    """Masked weights are set to zero after the softmax, and the rest not divided again.

    Rows sum to less than 1; the more padding, the smaller the output.
    """
    _, weights = self.correct.attention(module, query, key, value, None)
    kept = weights if mask is None else weights * mask
    return self.correct.mix(kept, value), kept


@fault("attention.softmax-over-queries", "rows-sum-to-one", seam="softmax", origin="B026")
def softmax_over_queries(self: Hooks, scores: Tensor) -> Tensor:
    """The softmax runs over the queries, not over the keys.

    Columns sum to 1, and under a causal mask the future leaks into the past.
    """
    return torch.softmax(scores, dim=-2).nan_to_num(0.0)


@fault("attention.softmax-over-heads", "rows-sum-to-one", seam="softmax", origin="B026")
def softmax_over_heads(self: Hooks, scores: Tensor) -> Tensor:
    """The softmax runs over axis 1, written for three axes and kept for four: the heads.

    Heads compete for a key, and no row sums to 1.
    """
    return torch.softmax(scores, dim=1).nan_to_num(0.0)


@fault("attention.softmax-without-exponential", "weights-nonnegative", seam="softmax")
def softmax_without_exponential(self: Hooks, scores: Tensor) -> Tensor:
    """Scores are divided by their sum; the exponential is left out.

    Rows sum to 1 with negative weights among them, and explode where the sum is near 0.
    """
    finite = scores.masked_fill(scores == -math.inf, 0.0)
    return finite / finite.sum(dim=-1, keepdim=True)


@fault("attention.weights-not-divided", "convex-hull", seam="softmax")
def weights_not_divided(self: Hooks, scores: Tensor) -> Tensor:
    """Exponentials are not divided by their sum. Outputs grow with the number of keys."""
    return torch.exp(scores - scores.amax(dim=-1, keepdim=True))


@fault("attention.softmax-overflows", "stable-for-large-scores", seam="softmax")
def softmax_overflows(self: Hooks, scores: Tensor) -> Tensor:
    """The maximum is not subtracted before exp. Scores above 709 (88 in float32) give NaN."""
    powers = torch.exp(scores)
    return powers / powers.sum(dim=-1, keepdim=True)


@fault("attention.softmax-maximum-of-batch", "stable-for-large-scores", seam="softmax")
def softmax_maximum_of_batch(self: Hooks, scores: Tensor) -> Tensor:
    """The largest score of the whole batch is taken out, not that of each row.

    Rows of small scores underflow and become zero over zero.
    """
    powers = torch.exp(scores - scores.max())
    return powers / powers.sum(dim=-1, keepdim=True)


@fault("attention.scores-clamped", "stable-for-large-scores", seam="scores")
def scores_clamped(self: Hooks, query: Tensor, key: Tensor, factor: float) -> Tensor:
    """Scores are clamped to 50 to avoid overflow. All large scores get the same weight."""
    return self.correct.scores(query, key, factor).clamp(-50.0, 50.0)


@fault("attention.zero-key-added", "one-key", seam="softmax", origin="D: add_zero_attn")
def zero_key_added(self: Hooks, scores: Tensor) -> Tensor:
    """A key and a value of zeros are added to every sequence. Part of the weight goes to them."""
    with_zero = torch.cat([scores, torch.zeros_like(scores[..., :1])], dim=-1)
    return self.correct.softmax(with_zero)[..., :-1]


@fault("attention.epsilon-in-softmax", "one-key", seam="softmax")
def epsilon_in_softmax(self: Hooks, scores: Tensor) -> Tensor:
    """1e-6 is added to the sum that the exponentials are divided by.

    Weights are a millionth too small; a single key does not give its value.
    """
    powers = torch.exp(scores - scores.amax(dim=-1, keepdim=True))
    return powers / (powers.sum(dim=-1, keepdim=True) + 1e-6)
