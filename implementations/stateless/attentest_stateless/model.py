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
    experts: int = 1
    chosen: int = 1
    shared: int = 1
    factor: float = 2.5

    def __post_init__(self) -> None:
        sizes = ("width", "heads", "groups", "inner", "layers", "vocabulary", "chosen", "shared")
        for name in sizes:
            if getattr(self, name) < 1:
                raise ValueError(f"{name} is {getattr(self, name)}; it must be at least 1")
        if self.width % self.heads:
            raise ValueError(f"a width of {self.width} cannot be divided among {self.heads} heads")
        if self.heads % self.groups:
            raise ValueError(f"{self.heads} heads cannot share {self.groups} of keys and values")
        if self.chosen > self.experts:
            raise ValueError(f"of {self.experts} experts {self.chosen} cannot be chosen")

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


def initial_mixture(config: Config) -> dict[str, Tensor]:
    """Return the weights of a mixture of M experts and a shared one, all experts in two arrays."""
    every = range(config.experts)
    return {
        "router": _normal(config.experts, config.width),
        "balance": torch.zeros(config.experts),
        "wides": torch.stack([_normal(2 * config.inner, config.width) for _ in every]),
        "narrows": torch.stack([_normal(config.width, config.inner) for _ in every]),
        "wide": _normal(2 * config.shared, config.width),
        "narrow": _normal(config.width, config.shared),
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
    return attention_after(config, layer, x, no_past(config, x), mask, positions)[0]


def no_past(config: Config, x: Tensor) -> Tensor:
    """Return the keys and values (2, B, 0, G, E) of no tokens, like x (B, T, D)."""
    return x.new_empty(2, len(x), 0, config.groups, config.unit)


def attention_after(
    config: Config,
    layer: Layer,
    x: Tensor,
    past: Tensor,
    mask: Tensor | None = None,
    positions: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Return self-attention of x (B, T, D) after `past` tokens, and the keys and values of all.

    Those are turned, (2, B, P, G, E) before and (2, B, P + T, G, E) after. `mask` broadcasts to
    (B, H, T, P + T); positions are P to P + T - 1 where there are none.
    """
    batch, length, _ = x.shape
    heads, groups, unit = config.heads, config.groups, config.unit
    end = past.shape[2] + length
    here = torch.arange(end - length, end, device=x.device)
    places = here[None] if positions is None else positions
    packed = functional.linear(x, layer["qkv"]).view(batch, length, -1, unit)
    query, key, value = packed.tensor_split((heads, heads + groups), dim=2)
    query, key = turn(query, places, config.base), turn(key, places, config.base)
    kept = torch.cat((past, torch.stack((key, value))), dim=2)
    keys, values = kept.repeat_interleave(heads // groups, dim=3).transpose(2, 3)
    earlier = here[:, None] >= torch.arange(end, device=x.device)
    found = functional.scaled_dot_product_attention(
        query.transpose(1, 2), keys, values, attn_mask=earlier if mask is None else mask & earlier
    )
    flat = found.transpose(1, 2).reshape(batch, length, -1)
    return functional.linear(flat, layer["out"]), kept


def network(layer: Layer, x: Tensor) -> Tensor:
    """Return the gated network of x (B, T, D): the first half of `wide` is the gate."""
    gate, value = functional.linear(x, layer["wide"]).chunk(2, dim=-1)
    return functional.linear(functional.gelu(gate, approximate="tanh") * value, layer["narrow"])


def mixture(config: Config, weights: Layer, x: Tensor) -> Tensor:
    """Return the shared network of x (B, T, D) plus the weighted experts, all of them computed.

    `balance` (M) has a say in which experts are chosen, and none in what they weigh.
    """
    wide = torch.promote_types(x.dtype, torch.float32)
    scores = torch.sigmoid(functional.linear(x.to(wide), weights["router"].to(wide)))
    chosen = (scores + weights["balance"]).topk(config.chosen, dim=-1).indices
    kept = torch.zeros_like(scores).scatter(-1, chosen, scores.gather(-1, chosen))
    shares = config.factor * kept / kept.sum(-1, keepdim=True)
    gate, value = torch.einsum("btd,mfd->btmf", x, weights["wides"]).chunk(2, dim=-1)
    hidden = functional.gelu(gate, approximate="tanh") * value
    outputs = torch.einsum("btmf,mdf->btmd", hidden, weights["narrows"])
    return torch.einsum("btm,btmd->btd", shares.to(x.dtype), outputs) + network(weights, x)


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
    return block_after(config, layer, x, no_past(config, x), keep, positions)[0]


def block_after(
    config: Config,
    layer: Layer,
    x: Tensor,
    past: Tensor,
    keep: Tensor | None = None,
    positions: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Return :func:`block` of x (B, T, D) after `past` tokens, and the keys and values of all.

    `keep` (B, P + T) is True for the real ones of all tokens.
    """
    before, after, inner, outer = layer["norms"]
    mask = None
    if keep is not None:
        end = keep.shape[1]
        itself = torch.eye(end, dtype=torch.bool, device=x.device)[end - x.shape[1] :]
        mask = keep[:, None, None] | itself
    opened = rms(x, before, config.epsilon)
    branch, kept = attention_after(config, layer, opened, past, mask, positions)
    x = x + rms(branch, after, config.epsilon)
    x = x + rms(network(layer, rms(x, inner, config.epsilon)), outer, config.epsilon)
    return x, kept


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
    past = empty(config, embedding, len(tokens))
    return logits_after(config, embedding, layers, norm, tokens, past, keep, positions)[0]


def empty(config: Config, embedding: Tensor, rows: int) -> Tensor:
    """Return the keys and values (N, 2, B, 0, G, E) of no tokens, for all blocks."""
    return embedding.new_empty(config.layers, 2, rows, 0, config.groups, config.unit)


def logits_after(
    config: Config,
    embedding: Tensor,
    layers: Sequence[Layer],
    norm: Tensor,
    tokens: Tensor,
    past: Tensor,
    keep: Tensor | None = None,
    positions: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Return the capped logits (B, T, V) for new tokens (B, T) after `past` ones.

    Keys and values of all blocks are one tensor, (N, 2, B, P, G, E) before and (N, 2, B, P + T, G,
    E) after, which is returned too. `keep` (B, P + T) is that of all tokens.
    """
    x = functional.embedding(tokens, embedding) * math.sqrt(config.width)
    kept = []
    for layer, own in zip(layers, past, strict=True):
        x, whole = block_after(config, layer, x, own, keep, positions)
        kept.append(whole)
    raw = functional.linear(rms(x, norm, config.epsilon), embedding)
    return config.cap * torch.tanh(raw / config.cap), torch.stack(kept)
