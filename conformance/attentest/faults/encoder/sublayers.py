"""Faults in the sublayers of a layer, their order and the paths around them."""

# ruff: noqa: F811
# mypy: disable-error-code="no-redef"

import math
from collections.abc import Callable

from torch import Tensor

from attentest.faults.encoder.shared import sublayer, wrapped
from attentest.faults.fault import fault
from attentest.specimens import Mask, Node, Seams

Function = Callable[[Tensor], Tensor]


@fault(
    "encoder.keys-skip-the-norm",
    clause="encoder.layer-formula",
    wrong="Pre-norm is applied to the queries of self-attention alone, not to keys and values.",
    effect="Keys and values grow with depth.",
    choices={"norm_placement": "pre"},
)
def encoder_layer(self: Seams, module: Node, x: Tensor, mask: Mask = None) -> Tensor:
    attend = self.sublayer_of(module, "self_attention")
    norm = self.norm_of(module, "self_attention")
    x = self.residual(module, norm, x, lambda inner: attend(inner, x, x, mask))
    return wrapped(self, module, "feed_forward", x, mask)


@fault(
    "encoder.branch-scaled-down",
    clause="encoder.layer-formula",
    wrong="The output of each sublayer is divided by the root of 2 before it is added.",
    effect="A trick for stable sums that nobody declared: weights do not carry over.",
    components=("encoder_layer",),
)
def drop_branch(self: Seams, module: Node, branch: Tensor) -> Tensor:
    kept = self.sound.drop_branch(module, branch)
    return kept / math.sqrt(2.0) if module.step == "encoder_layer" else kept


@fault(
    "encoder.feed-forward-first",
    clause="encoder.order-of-sublayers",
    wrong="The feed-forward network comes before self-attention.",
    effect="Another model with the same parameters and shapes.",
)
def encoder_order(self: Seams) -> tuple[str, ...]:
    return "feed_forward", "self_attention"


@fault(
    "encoder.sublayers-side-by-side",
    clause="encoder.order-of-sublayers",
    wrong="Both sublayers read the input of the layer, and their results are added.",
    effect="Another model with the same parameters and shapes.",
)
def encoder_layer(self: Seams, module: Node, x: Tensor, mask: Mask = None) -> Tensor:
    attended = wrapped(self, module, "self_attention", x, mask)
    return attended + wrapped(self, module, "feed_forward", x, mask) - x


def _without_skip(self: Seams, module: Node, name: str, x: Tensor, mask: Mask) -> Tensor:
    """Apply one sublayer with its norm and without the path around it."""
    function = sublayer(self, module, name, mask)
    norm = self.norm_of(module, name)
    branch = self.drop_branch(module, function(self.norm_before(norm, x)))
    return self.norm_after(norm, branch)


@fault(
    "encoder.no-skip-around-attention",
    clause="encoder.skip-connections",
    origin="B075",
    wrong="There is no path around self-attention.",
    effect="Every position is replaced by what it gathered; deep stacks stop learning.",
)
def encoder_layer(self: Seams, module: Node, x: Tensor, mask: Mask = None) -> Tensor:
    x = _without_skip(self, module, "self_attention", x, mask)
    return wrapped(self, module, "feed_forward", x, mask)


@fault(
    "encoder.no-skip-around-feed-forward",
    clause="encoder.skip-connections",
    origin="B075",
    wrong="There is no path around the feed-forward network.",
    effect="Deep stacks stop learning.",
)
def encoder_layer(self: Seams, module: Node, x: Tensor, mask: Mask = None) -> Tensor:
    x = wrapped(self, module, "self_attention", x, mask)
    return _without_skip(self, module, "feed_forward", x, mask)


@fault(
    "encoder.second-skip-from-the-input",
    clause="encoder.skip-connections",
    wrong="The path around the feed-forward network starts at the layer's input.",
    effect="What attention found passes on through the feed-forward network alone.",
)
def encoder_layer(self: Seams, module: Node, x: Tensor, mask: Mask = None) -> Tensor:
    attended = wrapped(self, module, "self_attention", x, mask)
    norm = self.norm_of(module, "feed_forward")
    fed = self.feed(module, self.norm_before(norm, attended))
    return self.norm_after(norm, x + self.drop_branch(module, fed))
