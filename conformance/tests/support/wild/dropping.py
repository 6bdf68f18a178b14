"""Sound code whose dropout and biases are built in ways of their own."""

from multi_head_attention import MultiHeadedAttention
from parts import PositionwiseFeedForward
from torch import nn


class FixedRate(PositionwiseFeedForward):
    """Drops at a rate that no argument sets."""

    def __init__(self, d_model, d_ff):
        super().__init__(d_model, d_ff, dropout=0.3)


class LeftOut(nn.Module):
    """Has a dropout layer in its sequence where its rate is not 0."""

    def __init__(self, d_model, d_ff, dropout=0.1):
        super().__init__()
        between = [nn.Dropout(dropout)] if dropout > 0 else []
        outer = nn.Linear(d_ff, d_model)
        self.layers = nn.Sequential(nn.Linear(d_model, d_ff), nn.ReLU(), *between, outer)

    def forward(self, x):
        return self.layers(x)


class ScaledInTraining(nn.Module):
    """A mistake: another function in training, without a random number."""

    def __init__(self, d_model, d_ff):
        super().__init__()
        self.inner, self.outer = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)

    def forward(self, x):
        return self.outer(self.inner(x).relu()) * (0.9 if self.training else 1.0)


class KeyWithoutBias(MultiHeadedAttention):
    """Has no bias of the keys, which would change no softmax."""

    def __init__(self, h, d_model):
        super().__init__(h, d_model, 0.0)
        self.linears[1] = nn.Linear(d_model, d_model, bias=False)
