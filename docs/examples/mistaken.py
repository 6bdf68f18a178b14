"""A layer norm as it is often written by hand, with a wrong declaration."""

import torch
from torch import Tensor, nn

from attentest_spec.torch import Recipe, TorchBackend


class Norm(nn.Module):
    """Subtract the mean, divide by the standard deviation, scale and shift."""

    def __init__(self, width: int) -> None:
        """Build for rows of `width` numbers."""
        super().__init__()
        self.gain = nn.Parameter(torch.ones(width))
        self.bias = nn.Parameter(torch.zeros(width))

    def forward(self, x: Tensor) -> Tensor:
        """Normalise the last axis of x."""
        deviation = x.std(-1, keepdim=True)
        return self.gain * (x - x.mean(-1, keepdim=True)) / (deviation + 1e-6) + self.bias


backend = TorchBackend(
    name="mistaken",
    title="a layer norm by hand",
    choices={"norm_variance": "biased", "norm_epsilon": 1e-5},
    recipes={
        "layer_norm": Recipe(
            build=lambda sizes: Norm(sizes.d_model),
            parameters={"gain": "gain", "bias": "bias"},
        ),
    },
)
