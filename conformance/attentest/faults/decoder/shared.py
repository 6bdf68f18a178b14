"""Helpers that the faults of the chapter `decoder` share."""

from torch import Tensor

from attentest.faults.reference_models import Function, Hooks, Mask, Node

SUBLAYERS = ("self_attention", "cross_attention", "feed_forward")


def steps_of(
    self: Hooks, module: Node, memory: Tensor, source_mask: Mask, target_mask: Mask
) -> dict[str, Function]:
    """Return the three sublayers of a layer as functions of one input."""
    return {
        "self_attention": lambda x: self.self_attend(module, x, target_mask),
        "cross_attention": lambda x: self.cross_attend(module, x, memory, source_mask),
        "feed_forward": lambda x: self.feed(module, x),
    }


def wrapped(self: Hooks, module: Node, name: str, x: Tensor, step: Function) -> Tensor:
    """Apply one sublayer in its residual connection, as the correct layer does."""
    return self.residual(module, self.norm_of(module, name), x, step)


def all_but(
    self: Hooks, module: Node, x: Tensor, steps: dict[str, Function], name: str, other: Function
) -> Tensor:
    """Apply the sublayers in turn; `other` stands for the whole residual connection of `name`."""
    for one in SUBLAYERS:
        x = other(x) if one == name else wrapped(self, module, one, x, steps[one])
    return x
