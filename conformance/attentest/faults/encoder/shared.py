"""What several modules of faults of the chapter `encoder` need."""

from collections.abc import Callable

from torch import Tensor

from attentest.faults.reference_models import Hooks, Mask, Node

Function = Callable[[Tensor], Tensor]


def wrapped(self: Hooks, module: Node, name: str, x: Tensor, mask: Mask) -> Tensor:
    """Apply one sublayer of a layer, in its residual connection, as the sound layer does."""
    function = sublayer(self, module, name, mask)
    return self.residual(module, self.norm_of(module, name), x, function)


def sublayer(self: Hooks, module: Node, name: str, mask: Mask) -> Function:
    """Return the sublayer `name` as a function of its input."""
    if name == "feed_forward":
        return lambda x: self.feed(module, x)
    return lambda x: self.self_attend(module, x, mask)
