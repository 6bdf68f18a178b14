"""Attention and networks with a parameter more than the spec has, which begins at 1 or at 0."""

import torch
from parts import PositionwiseFeedForward
from torch import nn
from torch.nn import functional


class ScaledHeads(nn.Module):
    """Multiplies the output of every head by a trained number."""

    def __init__(self, width, num_heads):
        super().__init__()
        if width % num_heads:
            raise ValueError(f"width {width} cannot be split into {num_heads} heads")
        self.num_heads = num_heads
        self.query = nn.Linear(width, width)
        self.key = nn.Linear(width, width)
        self.value = nn.Linear(width, width)
        self.out = nn.Linear(width, width)
        self.head_scale = nn.Parameter(torch.ones(num_heads))

    def scaled(self, x):
        return x * self.head_scale[:, None, None]

    def forward(self, x):
        q, k, v = (
            layer(x).unflatten(-1, (self.num_heads, -1)).transpose(1, 2)
            for layer in (self.query, self.key, self.value)
        )
        heads = self.scaled(functional.scaled_dot_product_attention(q, k, v))
        return self.out(heads.transpose(1, 2).flatten(2))


class UnusedScale(ScaledHeads):
    """Wrong: trains a parameter that nothing depends on."""

    def scaled(self, x):
        return x


class ScaledTwice(ScaledHeads):
    """Wrong: multiplies by another number than that of the parameter."""

    def scaled(self, x):
        return x * (1 + self.head_scale[:, None, None])


class ShiftedFeedForward(PositionwiseFeedForward):
    """Adds a trained row to its input, which is zero at first."""

    def __init__(self, d_model, d_ff, dropout=0.1):
        super().__init__(d_model, d_ff, dropout)
        self.shift = nn.Parameter(torch.zeros(d_model))

    def forward(self, x):
        return super().forward(x + self.shift)


class FixedFactor(ScaledHeads):
    """Holds a number that is not trained as a parameter."""

    def __init__(self, width, num_heads):
        super().__init__(width, num_heads)
        self.head_scale.requires_grad_(False)

    def scaled(self, x):
        return x * self.head_scale[:, None, None]


class FixedQuery(FixedFactor):
    """Wrong: does not train the projection of queries."""

    def __init__(self, width, num_heads):
        super().__init__(width, num_heads)
        self.query.requires_grad_(False)


class OfDistances(UnusedScale):
    """Uses its parameter where distances are given."""

    def forward(self, x, distances=None):
        found = super().forward(x)
        return found if distances is None else found + self.head_scale.sum() * distances


class KeyOfItsOwn(nn.Module):
    """Attention with one key and value that it learns, unless a switch is off."""

    def __init__(self, d_model: int, heads: int, add_key: bool = True) -> None:
        super().__init__()
        self.heads = heads
        self.query = nn.Linear(d_model, d_model)
        self.key = nn.Linear(d_model, d_model)
        self.value = nn.Linear(d_model, d_model)
        self.output = nn.Linear(d_model, d_model)
        self.own = nn.Parameter(torch.randn(2, 1, 1, d_model)) if add_key else None

    def forward(self, query, key, value):
        """Attend to the keys, and to the own one."""
        key, value = self.key(key), self.value(value)
        if self.own is not None:
            own = self.own.expand(-1, len(key), -1, -1)
            key, value = torch.cat([key, own[0]], 1), torch.cat([value, own[1]], 1)
        q, k, v = (
            one.view(*one.shape[:2], self.heads, -1).transpose(1, 2)
            for one in (self.query(query), key, value)
        )
        weights = (q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5).softmax(-1)
        return self.output((weights @ v).transpose(1, 2).flatten(2))
