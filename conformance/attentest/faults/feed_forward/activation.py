"""Faults in the activation between the two maps."""

# ruff: noqa: F811
# mypy: disable-error-code="no-redef"

import torch
from torch import Tensor
from torch.nn import functional

from attentest.faults.fault import fault
from attentest.specimens import Node, Seams


@fault(
    "feed_forward.argument-ignored",
    clause="feed_forward.activation",
    origin="B080",
    wrong="The activation is ReLU, whatever was asked for.",
    effect="Close to GELU far from zero, and other numbers around it.",
    choices={"activation": "gelu"},
)
def activation(self: Seams, x: Tensor) -> Tensor:
    return x.clamp(min=0)


@fault(
    "feed_forward.gelu-by-tanh",
    clause="feed_forward.activation",
    wrong="GELU is approximated by a hyperbolic tangent.",
    effect="Off by up to five ten-thousandths at every hidden unit.",
    choices={"activation": "gelu"},
)
def activation(self: Seams, x: Tensor) -> Tensor:
    return functional.gelu(x, approximate="tanh")


@fault(
    "feed_forward.leaky",
    clause="feed_forward.activation",
    wrong="The ReLU leaks a hundredth of what is negative.",
    effect="Units are never quite off.",
)
def activation(self: Seams, x: Tensor) -> Tensor:
    return functional.leaky_relu(x, 0.01)


@fault(
    "feed_forward.no-activation",
    clause="feed_forward.activation-between",
    origin="B078",
    wrong="The activation is made and never called.",
    effect="Two linear maps are one; it trains to less than it could.",
)
def activation(self: Seams, x: Tensor) -> Tensor:
    return x


@fault(
    "feed_forward.mean-slope",
    clause="feed_forward.activation-between",
    wrong="Every unit is halved, which is the mean slope of a ReLU, wherever it lies.",
    effect="The hidden layer is linear for every input.",
)
def activation(self: Seams, x: Tensor) -> Tensor:
    return 0.5 * x


@fault(
    "feed_forward.sigmoid-overflows",
    clause="feed_forward.large-inputs",
    wrong="The sigmoid is written as exp(x) / (1 + exp(x)).",
    effect="Infinity over infinity far out.",
    choices={"activation": "silu"},
)
def activation(self: Seams, x: Tensor) -> Tensor:
    return x * torch.exp(x) / (1.0 + torch.exp(x))


@fault(
    "feed_forward.relu-with-a-ceiling",
    clause="feed_forward.large-inputs",
    wrong="The ReLU is cut off at 100.",
    effect="Ordinary activations hide it.",
)
def activation(self: Seams, x: Tensor) -> Tensor:
    return x.clamp(min=0, max=100)


@fault(
    "feed_forward.activation-lost-in-copies",
    clause="feed_forward.activation-survives-copies",
    origin="B080",
    wrong="The activation is kept outside what a copy takes along, and falls back to GELU.",
    effect="Other numbers come out of the same weights after a deep copy or a pickle.",
    kind="state",
)
def feed_forward(self: Seams, module: Node, x: Tensor) -> Tensor:
    # A copy carries the identity of the original, which is not its own.
    if module.__dict__.setdefault("known_as", id(module)) == id(module):
        return self.sound.feed_forward(module, x)
    return self.contract(module, functional.gelu(self.expand(module, x)))
