"""What several modules of faults of the chapter `embedding` need."""

from torch import Tensor

from attentest.faults.reference_models import Node


def table_of(module: Node) -> Tensor:
    """Return the table of an embedding: its one parameter, whatever its name."""
    return next(module.parameters())
