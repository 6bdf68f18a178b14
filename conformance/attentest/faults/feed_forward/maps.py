"""Faults in the two maps, and in the order of the three steps."""

import torch
from torch import Tensor, nn

from attentest.faults.fault import fault
from attentest.faults.reference_models import Hooks, Node


@fault("feed_forward.activation-after-second-map", "formula", seam="feed_forward")
def activation_after_second_map(self: Hooks, module: Node, x: Tensor) -> Tensor:
    """The activation follows the second map. No output is ever negative."""
    return self.correct.activation(self.contract(module, self.expand(module, x)))


@fault("feed_forward.hidden-scaled", "formula", seam="contract")
def hidden_scaled(self: Hooks, module: Node, x: Tensor) -> Tensor:
    """The hidden layer is divided by the root of its width. Loaded weights give other numbers."""
    return self.correct.contract(module, x * x.shape[-1] ** -0.5)


@fault("feed_forward.skip-inside", "formula", seam="feed_forward")
def skip_inside(self: Hooks, module: Node, x: Tensor) -> Tensor:
    """The input is added inside too, besides the residual connection. It counts twice."""
    return self.correct.feed_forward(module, x) + x


@fault("feed_forward.inner-bias-dropped", "both-biases", seam="expand")
def inner_bias_dropped(self: Hooks, module: Node, x: Tensor) -> Tensor:
    """The first bias is not added. Zero biases hide it."""
    return self.correct.expand(module, x) - self.correct.expand(module, torch.zeros_like(x))


@fault("feed_forward.biases-dropped", "feed-forward-bias", seam="feed_forward")
def biases_dropped(self: Hooks, module: Node, x: Tensor) -> Tensor:
    """Both biases exist, and neither is added. Zero biases hide it."""
    bare = self.expand(module, x) - self.expand(module, torch.zeros_like(x))
    inner = self.drop_inner(module, self.activation(bare))
    return self.contract(module, inner) - self.contract(module, torch.zeros_like(inner))


@fault(
    "feed_forward.biases-undeclared",
    "feed-forward-bias",
    seam="make_feed_forward",
    choices={"feed_forward_bias": "none"},
)
def biases_undeclared(self: Hooks) -> Node:
    """Random biases exist where none are declared. A checkpoint without them keeps them."""
    present = self.choices.but(feed_forward_bias="present")
    built = type(self.correct)(self.sizes, present).make_feed_forward()
    for values in built.parameters():
        if values.dim() == 1:
            nn.init.normal_(values)
    return built


@fault("feed_forward.outer-bias-dropped", "both-biases", seam="contract")
def outer_bias_dropped(self: Hooks, module: Node, x: Tensor) -> Tensor:
    """The second bias is not added. Zero biases hide it."""
    return self.correct.contract(module, x) - self.correct.contract(module, torch.zeros_like(x))
