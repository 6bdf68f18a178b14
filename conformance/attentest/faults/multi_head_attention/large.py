"""Faults that only large inputs show: long, deep, wide or many."""

import torch
from torch import Tensor

from attentest.faults.fault import fault
from attentest.faults.reference_models import Hooks


@fault("multi_head_attention.eight-heads-at-most", "formula", seam="merge_heads")
def eight_heads_at_most(self: Hooks, x: Tensor) -> Tensor:
    """Heads from the ninth on are never written. A third of a model of twelve heads is lost."""
    written = torch.arange(x.shape[1], device=x.device) < 8
    return self.correct.merge_heads(torch.where(written[:, None, None], x, torch.zeros_like(x)))
