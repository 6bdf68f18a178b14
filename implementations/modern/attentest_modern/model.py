"""A decoder-only language model in one file, as in minimal training repositories.

One dataclass of settings, one class for each part, no biases, causality inside of the attention,
rotary positions. Shapes: B batch, T positions, D model width, H heads, G heads of keys and values,
E head width, F inner width, V vocabulary. The mixture of experts, which sparse models have in place
of the network, is a part by itself.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional


@dataclass
class Settings:
    """The sizes of a model; `kv_heads` of 0 means as many as `heads`."""

    dim: int
    heads: int = 1
    kv_heads: int = 0
    hidden: int = 0
    layers: int = 1
    vocab: int = 1
    eps: float = 1e-5
    theta: float = 500_000.0
    tied: bool = False

    def __post_init__(self) -> None:
        """Refuse sizes below 1, and heads that divide neither the width nor each other."""
        self.kv_heads = self.kv_heads or self.heads
        for name in ("dim", "heads", "kv_heads", "layers", "vocab"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} is {getattr(self, name)}; it must be at least 1")
        if self.dim % self.heads:
            raise ValueError(f"a width of {self.dim} cannot be divided among {self.heads} heads")
        if self.heads % self.kv_heads:
            raise ValueError(f"{self.heads} heads cannot share {self.kv_heads} of keys and values")


class RMSNorm(nn.Module):
    """Every row divided by the root of its mean square, times a weight."""

    def __init__(self, dim: int, eps: float = 1e-5) -> None:
        super().__init__()
        if dim < 1:
            raise ValueError(f"dim is {dim}; it must be at least 1")
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(dim))

    def forward(self, x: Tensor) -> Tensor:
        """Return x (.., D) normalised; half precision in float32, rounded before the weight."""
        wide = x.to(torch.promote_types(x.dtype, torch.float32))
        rows = wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + self.eps)
        return rows.to(x.dtype) * self.weight


class FeedForward(nn.Module):
    """A gated network: w1 is the gate, w3 the value, w2 the way back."""

    def __init__(self, dim: int, hidden: int) -> None:
        super().__init__()
        if dim < 1 or hidden < 1:
            raise ValueError(f"dim is {dim} and hidden {hidden}; both must be at least 1")
        self.w1 = nn.Linear(dim, hidden, bias=False)
        self.w2 = nn.Linear(hidden, dim, bias=False)
        self.w3 = nn.Linear(dim, hidden, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """Return the network's output for x (B, T, D)."""
        hidden = functional.silu(self.w1(x)) * self.w3(x)
        output: Tensor = self.w2(hidden)
        return output


class Experts(nn.Module):
    """A router and many gated networks, of which those with the best logits work on a token."""

    def __init__(self, dim: int, hidden: int, experts: int, chosen: int) -> None:
        super().__init__()
        if not 1 <= chosen <= experts:
            raise ValueError(f"of {experts} experts {chosen} cannot be chosen")
        self.chosen = chosen
        self.gate = nn.Linear(dim, experts, bias=False)
        self.experts = nn.ModuleList([FeedForward(dim, hidden) for _ in range(experts)])

    def forward(self, x: Tensor) -> Tensor:
        """Return the weighted sum of the chosen experts' outputs for x (.., D)."""
        rows = x.flatten(0, -2)
        best, chosen = self.gate(rows).topk(self.chosen, dim=-1)
        wide = torch.promote_types(x.dtype, torch.float32)
        weights = torch.softmax(best, dim=-1, dtype=wide).to(x.dtype)
        mixed = torch.zeros_like(rows)
        for number, expert in enumerate(self.experts):
            tokens, ranks = torch.where(chosen == number)
            output = weights[tokens, ranks, None] * expert(rows[tokens])
            mixed = mixed.index_add(0, tokens, output)
        return mixed.view(x.shape)


def rotations(positions: Tensor, width: int, theta: float) -> Tensor:
    """Return the turns at positions (B, T) as complex numbers (B, 1, T, E / 2) of length 1."""
    if width % 2:
        raise ValueError(f"a head of {width} columns has no pairs; its width must be even")
    pairs = torch.arange(0, width, 2, dtype=torch.float64, device=positions.device)
    angles = positions[..., None].double() * theta ** (-pairs / width)
    return torch.polar(torch.ones_like(angles), angles)[:, None]


def rotate(x: Tensor, turns: Tensor) -> Tensor:
    """Return x (B, H, T, E) with each two neighbouring columns turned."""
    wide = x.to(torch.promote_types(x.dtype, torch.float32))
    pairs = torch.view_as_complex(wide.reshape(*x.shape[:-1], -1, 2).contiguous())
    turned = pairs * turns.to(pairs.dtype)
    return torch.view_as_real(turned).flatten(-2).to(x.dtype)


KeyValue = tuple[Tensor, Tensor]
"""The kept part of P earlier tokens in a block: turned keys and values (B, G, P, E)."""


class Attention(nn.Module):
    """Causal self-attention, in which groups of query heads share a head of keys and values."""

    def __init__(self, settings: Settings) -> None:
        super().__init__()
        self.heads, self.kv_heads = settings.heads, settings.kv_heads
        self.width, self.theta = settings.dim // settings.heads, settings.theta
        self.wq = nn.Linear(settings.dim, self.heads * self.width, bias=False)
        self.wk = nn.Linear(settings.dim, self.kv_heads * self.width, bias=False)
        self.wv = nn.Linear(settings.dim, self.kv_heads * self.width, bias=False)
        self.wo = nn.Linear(self.heads * self.width, settings.dim, bias=False)

    def forward(
        self, x: Tensor, keep: Tensor | None = None, positions: Tensor | None = None
    ) -> Tensor:
        """Return the output for x (B, T, D).

        `keep` (B, 1, 1, T) or (B, 1, T, T) is True for real keys; `positions` (B, T) are those of
        the tokens, 0 to T - 1 by default.
        """
        return self.continued(x, keep, positions)[0]

    def continued(
        self,
        x: Tensor,
        keep: Tensor | None = None,
        positions: Tensor | None = None,
        past: KeyValue | None = None,
    ) -> tuple[Tensor, KeyValue]:
        """Return the output for x (B, T, D) after a `past` of P tokens, and what to keep of all.

        `keep` (B, 1, 1, P + T) or (B, 1, T, P + T) is that of all tokens; positions are P to
        P + T - 1 by default.
        """
        before, length = 0 if past is None else past[0].shape[2], x.shape[1]
        places = before + torch.arange(length, device=x.device)[None]
        turns = rotations(places if positions is None else positions, self.width, self.theta)
        query = rotate(self.split(self.wq(x), self.heads), turns)
        key = rotate(self.split(self.wk(x), self.kv_heads), turns)
        value = self.split(self.wv(x), self.kv_heads)
        if past is not None:
            key, value = torch.cat([past[0], key], dim=2), torch.cat([past[1], value], dim=2)
        ones = torch.ones(length, before + length, dtype=torch.bool, device=x.device)
        earlier = ones.tril(before)  # the first new token sees the whole past and itself
        mask = earlier if keep is None else earlier & keep
        mixed = functional.scaled_dot_product_attention(
            query, self.shared(key), self.shared(value), attn_mask=mask
        )
        output: Tensor = self.wo(mixed.transpose(1, 2).flatten(2))
        return output, (key, value)

    def split(self, x: Tensor, heads: int) -> Tensor:
        """Return x (B, T, heads * E) as (B, heads, T, E)."""
        batch, length, _ = x.shape
        return x.view(batch, length, heads, self.width).transpose(1, 2)

    def shared(self, x: Tensor) -> Tensor:
        """Return x (B, G, T, E) as (B, H, T, E): query head h gets head h // (H / G)."""
        return x.repeat_interleave(self.heads // self.kv_heads, dim=1)


class Block(nn.Module):
    """Attention and the network, each after a norm, each added to what it was given."""

    def __init__(self, settings: Settings) -> None:
        super().__init__()
        self.attention_norm = RMSNorm(settings.dim, settings.eps)
        self.attention = Attention(settings)
        self.ffn_norm = RMSNorm(settings.dim, settings.eps)
        self.feed_forward = FeedForward(settings.dim, settings.hidden)

    def forward(
        self, x: Tensor, keep: Tensor | None = None, positions: Tensor | None = None
    ) -> Tensor:
        """Return the block's output for x (B, T, D); `keep` (B, T) is True for real tokens."""
        return self.continued(x, keep, positions)[0]

    def continued(
        self,
        x: Tensor,
        keep: Tensor | None = None,
        positions: Tensor | None = None,
        past: KeyValue | None = None,
    ) -> tuple[Tensor, KeyValue]:
        """Return the output for x (B, T, D) after a `past` of P tokens, and what to keep of all.

        `keep` (B, P + T) is True for the real ones of all tokens.
        """
        seen = None
        if keep is not None:  # padding sees itself
            new = torch.arange(keep.shape[1] - x.shape[1], keep.shape[1], device=x.device)
            itself = new[:, None] == torch.arange(keep.shape[1], device=x.device)
            seen = keep[:, None, None, :] | itself
        attended, kept = self.attention.continued(self.attention_norm(x), seen, positions, past)
        x = x + attended
        return x + self.feed_forward(self.ffn_norm(x)), kept


class LanguageModel(nn.Module):
    """Embedding, blocks, a last norm, and one logit for each token of the vocabulary."""

    def __init__(self, settings: Settings) -> None:
        super().__init__()
        self.tok_embeddings = nn.Embedding(settings.vocab, settings.dim)
        self.layers = nn.ModuleList([Block(settings) for _ in range(settings.layers)])
        self.norm = RMSNorm(settings.dim, settings.eps)
        self.output = nn.Linear(settings.dim, settings.vocab, bias=False)
        if settings.tied:
            self.output.weight = self.tok_embeddings.weight

    def forward(
        self, tokens: Tensor, keep: Tensor | None = None, positions: Tensor | None = None
    ) -> Tensor:
        """Return logits (B, T, V) for tokens (B, T), with padding and positions or without."""
        return self.continued(tokens, keep, positions)[0]

    def continued(
        self,
        tokens: Tensor,
        keep: Tensor | None = None,
        positions: Tensor | None = None,
        past: list[KeyValue] | None = None,
    ) -> tuple[Tensor, list[KeyValue]]:
        """Return logits (B, T, V) for new tokens (B, T), and what every block keeps of all tokens.

        `past` is what was kept of the P tokens before, and is not changed. `keep` (B, P + T) is
        that of all tokens, `positions` (B, T) those of the new ones: P to P + T - 1 by default.
        """
        x, kept = self.tok_embeddings(tokens), []
        for number, layer in enumerate(self.layers):
            before = past[number] if past else None
            x, own = layer.continued(x, keep, positions, before)  # type: ignore[operator]  # a Block
            kept.append(own)
        logits: Tensor = self.output(self.norm(x))
        return logits, kept
