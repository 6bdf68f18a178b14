"""Faults in the precisions that a step is computed in."""

# ruff: noqa: F811
# mypy: disable-error-code="no-redef"

import torch
from torch import Tensor

from attentest.faults.fault import fault
from attentest.specimens import Seams


@fault(
    "attention.half-not-cast-back",
    clause="attention.half-precision",
    wrong="A call in half precision is computed in float32 and does not come back.",
    effect="What follows meets two precisions: it raises, or runs at twice the memory.",
)
def mix(self: Seams, weights: Tensor, value: Tensor) -> Tensor:
    half = value.dtype in (torch.float16, torch.bfloat16)
    return self.sound.mix(weights.float(), value.float()) if half else weights @ value


@fault(
    "attention.softmax-overflows-in-half",
    clause="attention.half-precision",
    wrong="The largest score is not taken out in float16, where exponentials end at 11.",
    effect="Infinity over infinity, at scores that are harmless in any other precision.",
)
def softmax(self: Seams, scores: Tensor) -> Tensor:
    if scores.dtype != torch.float16:
        return self.sound.softmax(scores)
    powers = torch.exp(scores)
    return powers / powers.sum(dim=-1, keepdim=True)


@fault(
    "attention.float32-through-half",
    clause="attention.float32",
    wrong="Products of a float32 call keep ten binary digits, as some fast modes do.",
    effect="Three decimal digits are right where seven were asked for.",
)
def scores(self: Seams, query: Tensor, key: Tensor, factor: float) -> Tensor:
    if query.dtype != torch.float32:
        return self.sound.scores(query, key, factor)
    return self.sound.scores(query.half().float(), key.half().float(), factor)


@fault(
    "attention.softmax-in-half",
    clause="attention.float32",
    wrong="The softmax of a float32 call runs in float16.",
    effect="Weights have three digits, and those below 6e-8 are gone.",
)
def softmax(self: Seams, scores: Tensor) -> Tensor:
    if scores.dtype != torch.float32:
        return self.sound.softmax(scores)
    return self.sound.softmax(scores.half()).float()


@fault(
    "attention.softmax-in-single",
    clause="attention.softmax-arithmetic",
    wrong="The softmax of a float64 call runs in float32.",
    effect="Half of the digits are gone, and no test with a tolerance of 1e-5 sees it.",
)
def softmax(self: Seams, scores: Tensor) -> Tensor:
    return self.sound.softmax(scores.float()).to(scores.dtype)


@fault(
    "attention.softmax-not-in-single",
    clause="attention.softmax-arithmetic",
    wrong="A softmax in float32 is declared, and runs in whatever it is given.",
    effect="In half precision the weights have the three digits that were to be spared.",
    choices={"softmax_arithmetic": "float32"},
)
def weigh(self: Seams, raw: Tensor) -> Tensor:
    return self.sound.softmax(raw)
