"""Faults in how scores become weights: the softmax."""

# ruff: noqa: F811
# mypy: disable-error-code="no-redef"

import math

import torch
from torch import Tensor, nn

from attentest.faults.fault import fault
from attentest.specimens import Mask, Seams

Answer = tuple[Tensor, Tensor]


@fault(
    "attention.softmax-base-two",
    clause="attention.weights-formula",
    wrong="The softmax takes powers of 2, not of e.",
    effect="Attention is flatter by a factor of 0.69 in the scores.",
)
def softmax(self: Seams, scores: Tensor) -> Tensor:
    return self.sound.softmax(scores * math.log(2.0))


@fault(
    "attention.softmax-temperature",
    clause="attention.weights-formula",
    wrong="A temperature of 1.01 is left in the softmax.",
    effect="Weights are one percent too flat in the scores: no loss curve shows it.",
)
def softmax(self: Seams, scores: Tensor) -> Tensor:
    return self.sound.softmax(scores / 1.01)


@fault(
    "attention.masked-after-softmax",
    clause="attention.rows-sum-to-one",
    origin="B006",
    wrong="Masked weights are set to zero after the softmax, and the rest not divided again.",
    effect="Rows sum to less than 1; the more padding, the smaller the output.",
)
def attention(
    self: Seams, module: nn.Module, query: Tensor, key: Tensor, value: Tensor, mask: Mask = None
) -> Answer:
    _, weights = self.sound.attention(module, query, key, value, None)
    kept = weights if mask is None else weights * mask
    return self.sound.mix(kept, value), kept


@fault(
    "attention.softmax-over-queries",
    clause="attention.rows-sum-to-one",
    origin="B026",
    wrong="The softmax runs over the queries, not over the keys.",
    effect="Columns sum to 1, and under a causal mask the future leaks into the past.",
)
def softmax(self: Seams, scores: Tensor) -> Tensor:
    return torch.softmax(scores, dim=-2).nan_to_num(0.0)


@fault(
    "attention.softmax-over-heads",
    clause="attention.rows-sum-to-one",
    origin="B026",
    wrong="The softmax runs over axis 1, written for three axes and kept for four: the heads.",
    effect="Heads compete for a key, and no row sums to 1.",
)
def softmax(self: Seams, scores: Tensor) -> Tensor:
    return torch.softmax(scores, dim=1).nan_to_num(0.0)


@fault(
    "attention.softmax-without-exponential",
    clause="attention.weights-nonnegative",
    wrong="Scores are divided by their sum; the exponential is left out.",
    effect="Rows sum to 1 with negative weights among them, and explode where the sum is near 0.",
)
def softmax(self: Seams, scores: Tensor) -> Tensor:
    finite = scores.masked_fill(scores == -math.inf, 0.0)
    return finite / finite.sum(dim=-1, keepdim=True)


@fault(
    "attention.weights-not-divided",
    clause="attention.convex-hull",
    wrong="Exponentials are not divided by their sum.",
    effect="Outputs are sums of values, up to as many times too large as there are keys.",
)
def softmax(self: Seams, scores: Tensor) -> Tensor:
    return torch.exp(scores - scores.amax(dim=-1, keepdim=True))


@fault(
    "attention.softmax-overflows",
    clause="attention.stable-for-large-scores",
    wrong="The softmax does not take out the largest score.",
    effect="Infinity over infinity as soon as a score passes 709 (88 in float32).",
)
def softmax(self: Seams, scores: Tensor) -> Tensor:
    powers = torch.exp(scores)
    return powers / powers.sum(dim=-1, keepdim=True)


@fault(
    "attention.softmax-maximum-of-batch",
    clause="attention.stable-for-large-scores",
    wrong="The largest score of the whole batch is taken out, not that of each row.",
    effect="Rows of small scores underflow and become zero over zero.",
)
def softmax(self: Seams, scores: Tensor) -> Tensor:
    powers = torch.exp(scores - scores.max())
    return powers / powers.sum(dim=-1, keepdim=True)


@fault(
    "attention.scores-clamped",
    clause="attention.stable-for-large-scores",
    wrong="Scores are clamped to 50 so that their exponentials do not overflow.",
    effect="Finite everywhere, and all large scores weigh the same.",
)
def scores(self: Seams, query: Tensor, key: Tensor, factor: float) -> Tensor:
    return self.sound.scores(query, key, factor).clamp(-50.0, 50.0)


@fault(
    "attention.zero-key-added",
    clause="attention.one-key",
    origin="D: add_zero_attn",
    wrong="A key of zeros with a value of zeros is added to every sentence.",
    effect="Part of every weight goes to a key that nobody passed.",
)
def softmax(self: Seams, scores: Tensor) -> Tensor:
    with_zero = torch.cat([scores, torch.zeros_like(scores[..., :1])], dim=-1)
    return self.sound.softmax(with_zero)[..., :-1]


@fault(
    "attention.epsilon-in-softmax",
    clause="attention.one-key",
    wrong="1e-6 is added to the sum that the exponentials are divided by.",
    effect="Weights are a millionth too small; a single key does not give its value.",
)
def softmax(self: Seams, scores: Tensor) -> Tensor:
    powers = torch.exp(scores - scores.amax(dim=-1, keepdim=True))
    return powers / (powers.sum(dim=-1, keepdim=True) + 1e-6)
