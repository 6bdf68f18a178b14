"""Faults in the gradients."""

from torch import Tensor

from attentest.faults.fault import fault
from attentest.faults.reference_models import Hooks, Node


@fault(
    "feed_forward.hidden-detached", "every-parameter-reached", seam="drop_inner", kind="gradient"
)
def hidden_detached(self: Hooks, module: Node, x: Tensor) -> Tensor:
    """The hidden layer is detached from the graph. The first map is never trained."""
    return self.correct.drop_inner(module, x.detach())


@fault(
    "feed_forward.outer-map-detached", "every-parameter-reached", seam="contract", kind="gradient"
)
def outer_map_detached(self: Hooks, module: Node, x: Tensor) -> Tensor:
    """The second map is applied to a hidden layer of its own that no gradient leaves.

    Values are right; the second map is trained by half.
    """
    whole = self.correct.contract(module, x)
    return 0.5 * whole + 0.5 * whole.detach()


@fault("feed_forward.straight-through", "gradient", seam="activation", kind="gradient")
def straight_through(self: Hooks, x: Tensor) -> Tensor:
    """The backward pass of the activation is that of the identity.

    Values are right; units that are off are trained.
    """
    return x + (self.correct.activation(x) - x).detach()


@fault("feed_forward.input-detached", "gradient", seam="expand", kind="gradient")
def input_detached(self: Hooks, module: Node, x: Tensor) -> Tensor:
    """The input is detached from the graph. Earlier layers are not trained through it."""
    return self.correct.expand(module, x.detach())


@fault("feed_forward.input-detached-in-training", "gradient", seam="feed_forward", kind="gradient")
def input_detached_in_training(self: Hooks, module: Node, x: Tensor) -> Tensor:
    """In training mode no gradient reaches the input.

    Gradient checks in evaluation mode pass, and lower layers train along the skip alone.
    """
    return self.correct.feed_forward(module, x.detach() if module.training else x)
