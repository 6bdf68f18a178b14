"""Faults in the gradients."""

from torch import Tensor, nn

from attentest.faults.fault import fault
from attentest.specimens import Node, Seams


@fault(
    "feed_forward.hidden-detached",
    clause="feed_forward.every-parameter-reached",
    wrong="The hidden layer is detached from the graph.",
    effect="The first map stays as it was born.",
    kind="gradient",
)
def drop_inner(self: Seams, module: nn.Module, x: Tensor) -> Tensor:
    return self.sound.drop_inner(module, x.detach())


@fault(
    "feed_forward.outer-map-detached",
    clause="feed_forward.every-parameter-reached",
    wrong="The second map is applied to a hidden layer of its own that no gradient leaves.",
    effect="Values are right; the second map is trained by half.",
    kind="gradient",
)
def contract(self: Seams, module: Node, x: Tensor) -> Tensor:
    whole = self.sound.contract(module, x)
    return 0.5 * whole + 0.5 * whole.detach()


@fault(
    "feed_forward.straight-through",
    clause="feed_forward.gradient",
    wrong="The backward pass of the activation is that of the identity.",
    effect="Values are right; units that are off are trained.",
    kind="gradient",
)
def activation(self: Seams, x: Tensor) -> Tensor:
    return x + (self.sound.activation(x) - x).detach()


@fault(
    "feed_forward.input-detached",
    clause="feed_forward.gradient",
    wrong="The input is detached from the graph.",
    effect="Nothing before the network is trained through it.",
    kind="gradient",
)
def expand(self: Seams, module: Node, x: Tensor) -> Tensor:
    return self.sound.expand(module, x.detach())


@fault(
    "feed_forward.input-detached-in-training",
    clause="feed_forward.gradient",
    wrong="In training mode no gradient reaches the input.",
    effect="Gradient checks in evaluation mode pass, and lower layers train along the skip alone.",
    kind="gradient",
)
def feed_forward(self: Seams, module: Node, x: Tensor) -> Tensor:
    return self.sound.feed_forward(module, x.detach() if module.training else x)
