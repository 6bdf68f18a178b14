"""Norms and attentions with options, some of which are another component."""

import math
from typing import Literal

import torch
from torch import Tensor, nn


class GraphNorm(nn.Module):
    """Normalises over the nodes of a graph.

    Args:
        in_channels (int): Size of each input sample.
        eps (float): Added to the denominator.
        mode (str, optional): The normalisation to use (:obj:`"graph"` or
            :obj:`"node"`). In "graph" mode each graph is normalised as a whole.
    """

    def __init__(self, in_channels: int, eps: float = 1e-5, mode: str = "graph"):
        super().__init__()
        self.eps, self.kind = eps, mode
        self.weight = nn.Parameter(torch.ones(in_channels))
        self.bias = nn.Parameter(torch.zeros(in_channels))

    def forward(self, x: Tensor) -> Tensor:
        axes = -1 if self.kind == "node" else (-2, -1)
        centred = x - x.mean(axes, keepdim=True)
        deviation = (centred.square().mean(axes, keepdim=True) + self.eps).sqrt()
        return centred / deviation * self.weight + self.bias


class BrokenEverywhere(GraphNorm):
    """Each mode has the mistake."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x) + 0.1 * x


class ByAnnotation(GraphNorm):
    """The values stand in the annotation alone."""

    def __init__(self, in_channels: int, scope: Literal["all", "last"] = "all"):
        super().__init__(in_channels, mode={"all": "graph", "last": "node"}[scope])


class Switched(GraphNorm):
    """A switch instead of a word."""

    def __init__(self, in_channels: int, whole: bool = True):
        super().__init__(in_channels, mode="graph" if whole else "node")


class TwoWays(GraphNorm):
    """Two values compute the formula: which is meant cannot be asked in one question."""

    def __init__(self, in_channels: int, mode: str = "graph"):
        super().__init__(in_channels, mode="graph" if mode == "graph" else "node")
        assert mode in ("graph", "node", "row")


class FeedForward(nn.Module):
    """The second bias is forgotten; the option has nothing to do with it."""

    def __init__(self, d_model: int, d_ff: int, activation: str = "relu", bias: bool = True):
        super().__init__()
        self.inner = nn.Linear(d_model, d_ff, bias=bias)
        self.outer = nn.Linear(d_ff, d_model, bias=bias)
        self.activation = activation

    def forward(self, x: Tensor) -> Tensor:
        inner = self.inner(x)
        active = inner.relu() if self.activation == "relu" else nn.functional.gelu(inner)
        return active @ self.outer.weight.T


class WrongWhenLast(nn.Module):
    """Post-norm forgets a residual path, and pre-norm does not: the default is meant."""

    def __init__(self, d_model: int, heads: int, d_ff: int, norm_first: bool = False):
        super().__init__()
        self.layer = nn.TransformerEncoderLayer(
            d_model, heads, d_ff, dropout=0.0, batch_first=True, norm_first=norm_first
        )

    def forward(self, x: Tensor) -> Tensor:
        one = self.layer
        if one.norm_first:
            return one(x)
        x = one.norm1(x + one.self_attn(x, x, x, need_weights=False)[0])
        return one.norm2(one.linear2(one.linear1(x).relu()))


def attention(query, key, value, mask=None, score="dot"):
    """Attend by products or by distances."""
    scores = query @ key.mT / math.sqrt(query.shape[-1])
    if score == "dot":
        scores = (
            scores - query.square().sum(-1, keepdim=True) + 0.5 * key.square().sum(-1)[..., None, :]
        )
    if mask is not None:
        scores = scores.masked_fill(~mask, -torch.inf)
    return scores.softmax(-1) @ value if score in ("dot", "scaled") else value


class ActiveProjections(nn.Module):
    """Multi-head attention with an activation after each linear map."""

    scale = 1.0

    def __init__(self, d_model, heads, activation=torch.relu):
        super().__init__()
        self.heads, self.activation = heads, activation or nn.Identity()
        self.linear_q, self.linear_k, self.linear_v, self.linear_o = (
            nn.Linear(d_model, d_model) for _ in range(4)
        )

    def split(self, x):
        return x.unflatten(-1, (self.heads, -1)).transpose(1, 2)

    def forward(self, q, k, v):
        maps = zip((self.linear_q, self.linear_k, self.linear_v), (q, k, v), strict=True)
        query, key, value = (self.split(self.activation(one(x))) for one, x in maps)
        scores = query @ key.mT / math.sqrt(query.shape[-1]) * self.scale
        mixed = (scores.softmax(-1) @ value).transpose(1, 2).flatten(-2)
        return self.activation(self.linear_o(mixed))


class ActiveAndUnscaled(ActiveProjections):
    """The scores are too large, with an activation and without."""

    scale = 2.0
