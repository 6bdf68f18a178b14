"""Sound multi-head attention of torch, and a backend with a parameter map that may lie."""

import torch
from torch import nn

from attentest_spec.torch import Recipe, TorchBackend

HONEST = {"query": "q", "key": "k", "value": "v", "output": "o"}


class Heads(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.q, self.k, self.v, self.o = (nn.Linear(width, width) for _ in range(4))
        self.wide = nn.Linear(width, width + 1)
        self.heads = heads

    def forward(self, query, key, value, mask):
        def split(x):
            return x.unflatten(-1, (self.heads, -1)).transpose(1, 2)

        q, k, v = split(self.q(query)), split(self.k(key)), split(self.v(value))
        scores = q @ k.mT / q.shape[-1] ** 0.5
        if mask is not None:
            scores = scores.masked_fill(~mask, float("-inf"))
        return self.o((torch.softmax(scores, -1) @ v).transpose(1, 2).flatten(2))


def backend_with(**changes):
    """Return the backend with `changes` to its map; None takes an entry out."""
    table = {name: own for name, own in {**HONEST, **changes}.items() if own}
    recipe = Recipe(lambda sizes: Heads(sizes.d_model, sizes.heads), parameters=table)
    return TorchBackend(
        name="mapped",
        title="multi-head attention",
        recipes={"multi_head_attention": recipe},
        choices={"projection_bias": "present"},
    )
