"""A decoder-only language model as functions of its weights: no class holds a layer.

Weights are nested dictionaries of tensors. Matrices that read the same input are packed into one,
and so are the weights of the norms. Shapes: B batch, T positions, D model width, H heads, G heads
of keys and values, E head width, F inner width, V vocabulary.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

Layer = Mapping[str, Tensor]
"""qkv ((H + 2G) E, D), out (D, HE), wide (2F, D), narrow (D, F), norms (4, D)."""


@dataclass(frozen=True)
class Config:
    """The sizes and constants of a model; ValueError for sizes that do not fit together."""

    width: int
    heads: int = 1
    groups: int = 1
    inner: int = 1
    layers: int = 1
    vocabulary: int = 1
    epsilon: float = 1e-6
    base: float = 10_000.0
    cap: float = 30.0

    def __post_init__(self) -> None:
        for name in ("width", "heads", "groups", "inner", "layers", "vocabulary"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} is {getattr(self, name)}; it must be at least 1")
        if self.width % self.heads:
            raise ValueError(f"a width of {self.width} cannot be divided among {self.heads} heads")
        if self.heads % self.groups:
            raise ValueError(f"{self.heads} heads cannot share {self.groups} of keys and values")

    @property
    def unit(self) -> int:
        """The width of a head."""
        return self.width // self.heads


def initial_layer(config: Config) -> dict[str, Tensor]:
    """Return the weights of one block: normal, with a deviation of 1 / sqrt(inputs); norms at 0."""
    rows = (config.heads + 2 * config.groups) * config.unit
    return {
        "qkv": _normal(rows, config.width),
        "out": _normal(config.width, config.width),
        "wide": _normal(2 * config.inner, config.width),
        "narrow": _normal(config.width, config.inner),
        "norms": torch.zeros(4, config.width),
    }


def initial_embedding(config: Config) -> Tensor:
    """Return the embedding (V, D), which is also the matrix of the logits."""
    return _normal(config.vocabulary, config.width)


def _normal(rows: int, columns: int) -> Tensor:
    return torch.randn(rows, columns) / math.sqrt(columns)


def rms(x: Tensor, weight: Tensor, epsilon: float) -> Tensor:
    """Return x (.., D) over the root of its mean square, times 1 + weight (D).

    Half precision is computed in float32 and rounded once, at the end.
    """
    wide = x.to(torch.promote_types(x.dtype, torch.float32))
    rows = wide * (wide.pow(2).mean(dim=-1, keepdim=True) + epsilon).rsqrt()
    return (rows * (1.0 + weight.to(wide.dtype))).to(x.dtype)


def turn(x: Tensor, positions: Tensor, base: float) -> Tensor:
    """Turn x (B, T, N, E) by its positions (B, T): column i together with column i + E/2."""
    half, rest = divmod(x.shape[-1], 2)
    if rest:
        raise ValueError(f"a head of {x.shape[-1]} columns has no halves; its width must be even")
    steps = torch.arange(half, dtype=torch.float64, device=x.device) / half
    angles = positions[:, :, None, None].double() * base**-steps
    wide = torch.promote_types(x.dtype, torch.float32)
    cosines, sines = angles.cos().to(wide), angles.sin().to(wide)
    a, b = x.to(wide).chunk(2, dim=-1)
    return torch.cat((a * cosines - b * sines, b * cosines + a * sines), dim=-1).to(x.dtype)


def attention(
    config: Config,
    layer: Layer,
    x: Tensor,
    mask: Tensor | None = None,
    positions: Tensor | None = None,
) -> Tensor:
    """Return causal self-attention of x (B, T, D).

    `mask`, True = may be attended, broadcasts to (B, H, T, T); `positions` (B, T) are 0 to T - 1
    where there are none.
    """
    batch, length, _ = x.shape
    heads, groups, unit = config.heads, config.groups, config.unit
    places = torch.arange(length, device=x.device)[None] if positions is None else positions
    packed = functional.linear(x, layer["qkv"]).view(batch, length, -1, unit)
    query, key, value = packed.tensor_split((heads, heads + groups), dim=2)
    query, key = turn(query, places, config.base), turn(key, places, config.base)
    query, key, value = (one.transpose(1, 2) for one in (query, key, value))
    key, value = (one.repeat_interleave(heads // groups, dim=1) for one in (key, value))
    if mask is not None:
        mask = mask & torch.ones(length, length, dtype=torch.bool, device=x.device).tril()
    found = functional.scaled_dot_product_attention(
        query, key, value, attn_mask=mask, is_causal=mask is None
    )
    return functional.linear(found.transpose(1, 2).reshape(batch, length, -1), layer["out"])


def network(layer: Layer, x: Tensor) -> Tensor:
    """Return the gated network of x (B, T, D): the first half of `wide` is the gate."""
    gate, value = functional.linear(x, layer["wide"]).chunk(2, dim=-1)
    return functional.linear(functional.gelu(gate, approximate="tanh") * value, layer["narrow"])


def block(
    config: Config,
    layer: Layer,
    x: Tensor,
    keep: Tensor | None = None,
    positions: Tensor | None = None,
) -> Tensor:
    """Return x (B, T, D) plus both branches, each between two norms.

    `keep` (B, T) is True for real tokens. Padding sees itself, so that it has a number.
    """
    before, after, inner, outer = layer["norms"]
    mask = None
    if keep is not None:
        mask = keep[:, None, None] | torch.eye(x.shape[1], dtype=torch.bool, device=x.device)
    branch = attention(config, layer, rms(x, before, config.epsilon), mask, positions)
    x = x + rms(branch, after, config.epsilon)
    return x + rms(network(layer, rms(x, inner, config.epsilon)), outer, config.epsilon)


def logits(
    config: Config,
    embedding: Tensor,
    layers: Sequence[Layer],
    norm: Tensor,
    tokens: Tensor,
    keep: Tensor | None = None,
    positions: Tensor | None = None,
) -> Tensor:
    """Return the capped logits (B, T, V) for tokens (B, T)."""
    x = functional.embedding(tokens, embedding) * math.sqrt(config.width)
    for layer in layers:
        x = block(config, layer, x, keep, positions)
    raw = functional.linear(rms(x, norm, config.epsilon), embedding)
    return config.cap * torch.tanh(raw / config.cap)
