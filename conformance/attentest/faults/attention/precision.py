"""Faults in the precision of a step."""

import torch
from torch import Tensor

from attentest.faults.fault import fault
from attentest.faults.reference_models import Hooks


@fault("attention.half-not-cast-back", "half-precision", seam="mix")
def half_not_cast_back(self: Hooks, weights: Tensor, value: Tensor) -> Tensor:
    """A call in half precision is computed in float32 and does not come back.

    What follows meets two precisions: it raises, or runs at twice the memory.
    """
    half = value.dtype in (torch.float16, torch.bfloat16)
    return self.correct.mix(weights.float(), value.float()) if half else weights @ value


@fault("attention.softmax-overflows-in-half", "half-precision", seam="softmax")
def softmax_overflows_in_half(self: Hooks, scores: Tensor) -> Tensor:
    """The largest score is not taken out in float16, where exponentials end at 11.

    Infinity over infinity, at scores that are harmless in any other precision.
    """
    if scores.dtype != torch.float16:
        return self.correct.softmax(scores)
    powers = torch.exp(scores)
    return powers / powers.sum(dim=-1, keepdim=True)


@fault("attention.float32-through-half", "float32", seam="scores")
def float32_through_half(self: Hooks, query: Tensor, key: Tensor, factor: float) -> Tensor:
    """Products of a float32 call keep ten binary digits, as some fast modes do.

    Three decimal digits are right where seven were asked for.
    """
    if query.dtype != torch.float32:
        return self.correct.scores(query, key, factor)
    return self.correct.scores(query.half().float(), key.half().float(), factor)


@fault("attention.softmax-in-half", "float32", seam="softmax")
def softmax_in_half(self: Hooks, scores: Tensor) -> Tensor:
    """The softmax of a float32 call runs in float16. Weights have three digits."""
    if scores.dtype != torch.float32:
        return self.correct.softmax(scores)
    return self.correct.softmax(scores.half()).float()


@fault("attention.softmax-in-single", "softmax-arithmetic", seam="softmax")
def softmax_in_single(self: Hooks, scores: Tensor) -> Tensor:
    """The softmax of a float64 call runs in float32.

    Half of the digits are gone, and no test with a tolerance of 1e-5 sees it.
    """
    return self.correct.softmax(scores.float()).to(scores.dtype)


@fault(
    "attention.softmax-not-in-single",
    "softmax-arithmetic",
    seam="weigh",
    choices={"softmax_arithmetic": "float32"},
)
def softmax_not_in_single(self: Hooks, raw: Tensor) -> Tensor:
    """A softmax in float32 is declared, and runs in whatever it is given.

    In half precision the weights have the three digits that were to be spared.
    """
    return self.correct.softmax(raw)
