"""Faults in which positions and samples an output depends on."""

# ruff: noqa: F811
# mypy: disable-error-code="no-redef"

import torch
from torch import Tensor

from attentest.faults.fault import fault
from attentest.specimens import Node, Seams


@fault(
    "feed_forward.centred-over-sentence",
    clause="feed_forward.position-wise",
    wrong="The hidden layer is centred over the positions.",
    effect="Every word depends on the others, pads and the future included.",
)
def expand(self: Seams, module: Node, x: Tensor) -> Tensor:
    inner = self.sound.expand(module, x)
    return inner - inner.mean(dim=-2, keepdim=True) if inner.shape[-2] > 1 else inner


@fault(
    "feed_forward.centred-over-batch",
    clause="feed_forward.position-wise",
    wrong="The input is centred over the samples, as in batch normalisation.",
    effect="A sentence depends on the ones it was batched with.",
)
def expand(self: Seams, module: Node, x: Tensor) -> Tensor:
    return self.sound.expand(module, x - x.mean(dim=0, keepdim=True))


@fault(
    "feed_forward.positions-beyond-a-chunk",
    clause="feed_forward.position-wise",
    wrong="Positions are taken in chunks of 32, and what is left over gets the outer bias alone.",
    effect="The ends of long sentences are lost.",
    specimens=("plain",),
)
def feed_forward(self: Seams, module: Node, x: Tensor) -> Tensor:
    whole = x.shape[1] if x.shape[1] < 32 else x.shape[1] // 32 * 32
    output = self.sound.feed_forward(module, x[:, :whole])
    rest = module.outer.bias.expand(len(x), x.shape[1] - whole, -1)
    return torch.cat((output, rest), dim=1)
