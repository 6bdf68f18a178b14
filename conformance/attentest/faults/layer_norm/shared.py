"""What several modules of faults of the chapter `layer_norm` need."""

from torch import Tensor

from attentest.faults.reference_models import Node


def gain_and_bias(module: Node) -> tuple[Tensor, Tensor]:
    """Return the two parameters, whatever the reference model calls them."""
    gain, bias = module.parameters()
    return gain, bias
