"""Faults that only large inputs show: long, deep, wide or many."""

import torch
from torch import Tensor

from attentest.faults.fault import fault
from attentest.faults.reference_models import Hooks, Inputs


@fault("decoder.memory-up-to-256", "layer-formula", seam="cross_inputs")
def memory_up_to_256(self: Hooks, x: Tensor, memory: Tensor) -> Inputs:
    """The memory from position 256 on is read as zeros. Long sources lose their end."""
    place = torch.arange(memory.shape[1], device=memory.device)
    return self.correct.cross_inputs(x, memory * (place < 256)[:, None])
