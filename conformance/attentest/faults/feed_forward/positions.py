"""Faults that mix positions or samples."""

import torch
from torch import Tensor

from attentest.faults.fault import fault
from attentest.faults.reference_models import Hooks, Node


@fault("feed_forward.centred-over-sentence", "position-wise", seam="expand")
def centred_over_sentence(self: Hooks, module: Node, x: Tensor) -> Tensor:
    """The hidden layer is centred over the positions. Tokens depend on all others."""
    inner = self.correct.expand(module, x)
    return inner - inner.mean(dim=-2, keepdim=True) if inner.shape[-2] > 1 else inner


@fault("feed_forward.centred-over-batch", "position-wise", seam="expand")
def centred_over_batch(self: Hooks, module: Node, x: Tensor) -> Tensor:
    """The input is centred over the batch, as in batch normalisation. Samples affect each other."""
    return self.correct.expand(module, x - x.mean(dim=0, keepdim=True))


@fault(
    "feed_forward.positions-beyond-a-chunk", "position-wise", seam="feed_forward", models=("plain",)
)
def positions_beyond_a_chunk(self: Hooks, module: Node, x: Tensor) -> Tensor:
    """Positions are taken in chunks of 32, and the remainder gets the outer bias alone.

    Long sequences lose their end.
    """
    whole = x.shape[1] if x.shape[1] < 32 else x.shape[1] // 32 * 32
    output = self.correct.feed_forward(module, x[:, :whole])
    rest = module.outer.bias.expand(len(x), x.shape[1] - whole, -1)
    return torch.cat((output, rest), dim=1)
