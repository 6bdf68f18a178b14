"""Faults in what is returned: shapes and precisions."""

# ruff: noqa: F811
# mypy: disable-error-code="no-redef"

import torch
from torch import Tensor

from attentest.faults.fault import fault
from attentest.specimens import Node, Seams


@fault(
    "feed_forward.squeezed",
    clause="feed_forward.shapes",
    wrong="Axes of length one are dropped from the output.",
    effect="A batch of one, or a sentence of one word, changes its shape.",
)
def feed_forward(self: Seams, module: Node, x: Tensor) -> Tensor:
    return self.sound.feed_forward(module, x).squeeze()


@fault(
    "feed_forward.always-float32",
    clause="feed_forward.shapes",
    wrong="The output is float32, whatever came in.",
    effect="float64 loses half of its digits.",
)
def feed_forward(self: Seams, module: Node, x: Tensor) -> Tensor:
    return self.sound.feed_forward(module, x).float()


@fault(
    "feed_forward.float32-in-bfloat16",
    clause="feed_forward.float32",
    wrong="The hidden layer of a float32 call is kept in bfloat16.",
    effect="Five digits are lost, silently.",
)
def activation(self: Seams, x: Tensor) -> Tensor:
    sound = self.sound.activation(x)
    return sound.bfloat16().to(x.dtype) if x.dtype == torch.float32 else sound


@fault(
    "feed_forward.float32-in-float16",
    clause="feed_forward.float32",
    wrong="The first product of a float32 call is rounded to float16.",
    effect="Four digits are lost, silently.",
)
def expand(self: Seams, module: Node, x: Tensor) -> Tensor:
    sound = self.sound.expand(module, x)
    return sound.half().to(x.dtype) if x.dtype == torch.float32 else sound


@fault(
    "feed_forward.overflow-in-half",
    clause="feed_forward.half-precision",
    origin="B126",
    wrong="The hidden layer is scaled up by a hundred thousand and down again.",
    effect="float16 is infinite on the way.",
)
def contract(self: Seams, module: Node, x: Tensor) -> Tensor:
    return self.sound.contract(module, (x * 1e5) / 1e5)


@fault(
    "feed_forward.not-narrowed-back",
    clause="feed_forward.half-precision",
    wrong="A half-precision result is returned in float32.",
    effect="What follows is asked to multiply unlike precisions.",
)
def feed_forward(self: Seams, module: Node, x: Tensor) -> Tensor:
    sound = self.sound.feed_forward(module, x)
    return sound.float() if x.dtype in (torch.float16, torch.bfloat16) else sound
