"""What several modules of faults of the chapter `multi_head_attention` need."""

import torch
from torch import Tensor

from attentest.faults.reference_models import Hooks, Node


def bias_of(self: Hooks, module: Node, name: str, x: Tensor) -> Tensor:
    """Return the bias of the projection `name`: what it makes of zeros."""
    return self.correct.project(module, name, torch.zeros_like(x))
