"""Faults that only large inputs show: long, deep, wide or many."""

from torch import Tensor

from attentest.faults.fault import fault
from attentest.faults.reference_models import Hooks, Node


@fault("embedding.ids-up-to-a-thousand", "lookup", seam="lookup")
def ids_up_to_a_thousand(self: Hooks, module: Node, tokens: Tensor) -> Tensor:
    """Ids from 1,000 on are counted from 0 again. Most words of a language have another's row."""
    return self.correct.lookup(module, tokens % 1000)
