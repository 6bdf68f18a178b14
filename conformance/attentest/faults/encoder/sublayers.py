"""Faults in the sublayers of a layer, their order and the paths around them."""

import math

from torch import Tensor

from attentest.faults.fault import fault
from attentest.faults.reference_models import Function, Hooks, Mask, Node


def wrapped(self: Hooks, module: Node, name: str, x: Tensor, mask: Mask) -> Tensor:
    """Apply one sublayer of a layer, in its residual connection, as the correct layer does."""
    function = sublayer(self, module, name, mask)
    return self.residual(module, self.norm_of(module, name), x, function)


def sublayer(self: Hooks, module: Node, name: str, mask: Mask) -> Function:
    """Return the sublayer `name` as a function of its input."""
    if name == "feed_forward":
        return lambda x: self.feed(module, x)
    return lambda x: self.self_attend(module, x, mask)


@fault(
    "encoder.keys-skip-the-norm",
    "layer-formula",
    seam="encoder_layer",
    choices={"norm_placement": "pre"},
)
def keys_skip_the_norm(self: Hooks, module: Node, x: Tensor, mask: Mask = None) -> Tensor:
    """Pre-norm is applied to the queries of self-attention alone, not to keys and values.

    Keys and values grow with depth.
    """
    attend = self.sublayer_of(module, "self_attention")
    norm = self.norm_of(module, "self_attention")
    x = self.residual(module, norm, x, lambda inner: attend(inner, x, x, mask))
    return wrapped(self, module, "feed_forward", x, mask)


@fault("encoder.branch-scaled-down", "layer-formula", seam="drop_branch", in_layer=True)
def branch_scaled_down(self: Hooks, module: Node, branch: Tensor) -> Tensor:
    """The output of each sublayer is divided by the root of 2 before it is added.

    A trick for stable sums that is not declared: weights do not carry over.
    """
    kept = self.correct.drop_branch(module, branch)
    return kept / math.sqrt(2.0) if module.step == "encoder_layer" else kept


@fault("encoder.feed-forward-first", "order-of-sublayers", seam="encoder_order")
def feed_forward_first(self: Hooks) -> tuple[str, ...]:
    """The feed-forward network comes first. It is another model with the same shapes."""
    return "feed_forward", "self_attention"


@fault("encoder.sublayers-side-by-side", "order-of-sublayers", seam="encoder_layer")
def sublayers_side_by_side(self: Hooks, module: Node, x: Tensor, mask: Mask = None) -> Tensor:
    """Both sublayers read the input of the layer, and their results are added.

    Another model with the same parameters and shapes.
    """
    attended = wrapped(self, module, "self_attention", x, mask)
    return attended + wrapped(self, module, "feed_forward", x, mask) - x


def _without_skip(self: Hooks, module: Node, name: str, x: Tensor, mask: Mask) -> Tensor:
    """Apply one sublayer with its norm and without the path around it."""
    function = sublayer(self, module, name, mask)
    norm = self.norm_of(module, name)
    branch = self.drop_branch(module, function(self.norm_before(norm, x)))
    return self.norm_after(norm, branch)


@fault("encoder.no-skip-around-attention", "skip-connections", seam="encoder_layer", origin="B075")
def no_skip_around_attention(self: Hooks, module: Node, x: Tensor, mask: Mask = None) -> Tensor:
    """There is no path around self-attention.

    Every position is replaced by what it gathered; deep stacks stop learning.
    """
    x = _without_skip(self, module, "self_attention", x, mask)
    return wrapped(self, module, "feed_forward", x, mask)


@fault(
    "encoder.no-skip-around-feed-forward", "skip-connections", seam="encoder_layer", origin="B075"
)
def no_skip_around_feed_forward(self: Hooks, module: Node, x: Tensor, mask: Mask = None) -> Tensor:
    """There is no path around the feed-forward network. Deep stacks stop learning."""
    x = wrapped(self, module, "self_attention", x, mask)
    return _without_skip(self, module, "feed_forward", x, mask)


@fault("encoder.second-skip-from-the-input", "skip-connections", seam="encoder_layer")
def second_skip_from_the_input(self: Hooks, module: Node, x: Tensor, mask: Mask = None) -> Tensor:
    """The path around the feed-forward network starts at the layer's input.

    What attention found passes on through the feed-forward network alone.
    """
    attended = wrapped(self, module, "self_attention", x, mask)
    norm = self.norm_of(module, "feed_forward")
    fed = self.feed(module, self.norm_before(norm, attended))
    return self.norm_after(norm, x + self.drop_branch(module, fed))
