"""Faults in the two maps, and in the order of the three steps."""

# ruff: noqa: F811
# mypy: disable-error-code="no-redef"

import torch
from torch import Tensor, nn

from attentest.faults.fault import fault
from attentest.specimens import Node, Seams


@fault(
    "feed_forward.activation-after-second-map",
    clause="feed_forward.formula",
    wrong="The activation stands after the second map, not between the two.",
    effect="No output is ever negative.",
)
def feed_forward(self: Seams, module: Node, x: Tensor) -> Tensor:
    return self.sound.activation(self.contract(module, self.expand(module, x)))


@fault(
    "feed_forward.hidden-scaled",
    clause="feed_forward.formula",
    wrong="The hidden layer is divided by the root of its width.",
    effect="It trains, and weights from elsewhere give other numbers.",
)
def contract(self: Seams, module: Node, x: Tensor) -> Tensor:
    return self.sound.contract(module, x * x.shape[-1] ** -0.5)


@fault(
    "feed_forward.skip-inside",
    clause="feed_forward.formula",
    wrong="The input is added inside, and once more by the residual connection.",
    effect="The skip counts twice.",
)
def feed_forward(self: Seams, module: Node, x: Tensor) -> Tensor:
    return self.sound.feed_forward(module, x) + x


@fault(
    "feed_forward.inner-bias-dropped",
    clause="feed_forward.both-biases",
    wrong="The first bias is not added.",
    effect="Invisible on fresh weights; every hidden unit switches at zero.",
)
def expand(self: Seams, module: Node, x: Tensor) -> Tensor:
    return self.sound.expand(module, x) - self.sound.expand(module, torch.zeros_like(x))


@fault(
    "feed_forward.biases-dropped",
    clause="feed_forward.feed-forward-bias",
    wrong="Both biases are held, and neither is added.",
    effect="Invisible on fresh weights; half of what is trained changes nothing.",
)
def feed_forward(self: Seams, module: Node, x: Tensor) -> Tensor:
    bare = self.expand(module, x) - self.expand(module, torch.zeros_like(x))
    inner = self.drop_inner(module, self.activation(bare))
    return self.contract(module, inner) - self.contract(module, torch.zeros_like(inner))


@fault(
    "feed_forward.biases-undeclared",
    clause="feed_forward.feed-forward-bias",
    wrong="The two maps have biases, random at birth, where none are declared.",
    effect="A checkpoint without them leaves them as they are.",
    choices={"feed_forward_bias": "none"},
)
def make_feed_forward(self: Seams) -> Node:
    present = self.choices.but(feed_forward_bias="present")
    built = type(self.sound)(self.sizes, present).make_feed_forward()
    for values in built.parameters():
        if values.dim() == 1:
            nn.init.normal_(values)
    return built


@fault(
    "feed_forward.outer-bias-dropped",
    clause="feed_forward.both-biases",
    wrong="The second bias is not added.",
    effect="Invisible on fresh weights.",
)
def contract(self: Seams, module: Node, x: Tensor) -> Tensor:
    return self.sound.contract(module, x) - self.sound.contract(module, torch.zeros_like(x))
