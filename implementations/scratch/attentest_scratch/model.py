"""A one-layer Transformer on one page, with no dropout, for the study of training.

Every head is as wide as the model, one norm serves all sublayers of a side, masks are numbers
added to the scores (0 keeps, -inf hides), and softmax and ReLU are written out.

Shapes: B batch, S source, T target, H heads, D model width, F inner width, V vocabulary, Q and K
any number of queries and keys. Leading axes broadcast: one sequence (S, D) works as (B, S, D).
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn


def require_sizes(**sizes: int) -> None:
    """Raise ValueError for the first size below 1."""
    for name, size in sizes.items():
        if size < 1:
            raise ValueError(f"{name} is {size}; give a whole number of at least 1")


def softmax(x: Tensor) -> Tensor:
    """Return exp(x) over its sum along the last axis; NaN where every x is -inf."""
    # Dividing above and below by the largest exponential changes nothing, and exp(1000) overflows.
    powers = (x - x.detach().amax(-1, keepdim=True)).exp()
    return powers / powers.sum(-1, keepdim=True)


def relu(x: Tensor) -> Tensor:
    """Return x where positive, else 0."""
    return x.masked_fill(x <= 0, 0.0)


def positions(length: int, d_model: int) -> Tensor:
    """Return sin, cos of position / 10000^(2i / D) in columns i, i + 1, i = 0, 2, ..: (S, D).

    As i steps by two, the exponent is twice the paper's. An odd D ends with a sine. Float64.
    """
    place = torch.arange(length, dtype=torch.float64, device="cpu").unsqueeze(1)
    i = torch.arange(0, d_model, 2, dtype=torch.float64, device="cpu")
    angle = place / 10000.0 ** (2 * i / d_model)
    return torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(-2)[:, :d_model]


def add_positions(x: Tensor) -> Tensor:
    """Map float input (B, S, D) to the same plus its positions, of any length."""
    # Made in float64 and rounded once, so that far positions stay exact in every dtype of x.
    return x + positions(x.size(-2), x.size(-1)).to(x)


def causal_mask(length: int, device: torch.device | str | None = None) -> Tensor:
    """Return (T, T): 0 on and below the diagonal, -inf above, where a query would see ahead."""
    require_sizes(length=length)
    return torch.full((length, length), -math.inf, device=device).triu(1)


def padding_mask(tokens: Tensor, pad: int) -> Tensor:
    """Return (B, 1, 1, S) for tokens (B, S): 0 on tokens, -inf on keys that are padding."""
    zeros = torch.zeros(tokens.shape, device=tokens.device)
    return zeros.masked_fill(tokens == pad, -math.inf)[..., None, None, :]


def attention(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor]:
    """Return softmax(q k^T / sqrt(k_dim) + mask) v and the weights.

    q (B, H, Q, k_dim), k (B, H, K, k_dim), v (B, H, K, any), mask broadcasting to (B, H, Q, K).
    A query with every key hidden gives NaN: an average of nothing is undefined.
    """
    scores = q @ k.transpose(-2, -1) / math.sqrt(k.size(-1))
    if mask is not None:
        scores = scores + mask.to(scores)
    weights = softmax(scores)
    return weights @ v, weights


class MultiHeadAttention(nn.Module):
    """Attend in heads of the full width D: W_q, W_k, W_v map D -> D * H, W_o maps D * H -> D.

    Widths that H does not divide would work, and are refused all the same: a model of narrow heads
    could not be compared with this one at such sizes.
    """

    def __init__(self, d_model: int, heads: int) -> None:
        super().__init__()
        require_sizes(d_model=d_model, heads=heads)
        if d_model % heads:
            raise ValueError(
                f"d_model {d_model} is not divisible by {heads} heads (remainder "
                f"{d_model % heads}); choose a d_model that is a multiple of heads"
            )
        self.heads = heads
        self.W_q = nn.Linear(d_model, d_model * heads)
        self.W_k = nn.Linear(d_model, d_model * heads)
        self.W_v = nn.Linear(d_model, d_model * heads)
        self.W_o = nn.Linear(d_model * heads, d_model)

    def forward(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
        """Map q (B, Q, D), k and v (B, K, D) to (B, Q, D)."""
        q, k, v = self.split(self.W_q(q)), self.split(self.W_k(k)), self.split(self.W_v(v))
        context, _ = attention(q, k, v, mask)
        out: Tensor = self.W_o(context.transpose(-3, -2).flatten(-2))
        return out

    def split(self, x: Tensor) -> Tensor:
        """Map (B, S, D * H) to (B, H, S, D)."""
        # Without the transpose, a head would get a run of positions instead of its own features.
        return x.view(*x.shape[:-1], self.heads, -1).transpose(-3, -2)


class FeedForward(nn.Module):
    """Map every position alone: fc2(relu(fc1(x))), D -> F -> D."""

    def __init__(self, d_model: int, hidden: int) -> None:
        super().__init__()
        require_sizes(d_model=d_model, hidden=hidden)
        self.fc1 = nn.Linear(d_model, hidden)
        self.fc2 = nn.Linear(hidden, d_model)

    def forward(self, x: Tensor) -> Tensor:
        """Map (B, S, D) to (B, S, D)."""
        out: Tensor = self.fc2(relu(self.fc1(x)))
        return out


class Encoder(nn.Module):
    """Read the source: attention and feed-forward, each added and passed through the one norm."""

    def __init__(self, d_model: int, heads: int, hidden: int) -> None:
        super().__init__()
        self.attention = MultiHeadAttention(d_model, heads)
        self.ffn = FeedForward(d_model, hidden)
        self.norm = nn.LayerNorm(d_model)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Map x (B, S, D), positions included, to the memory (B, S, D)."""
        x = self.norm(self.attention(x, x, x, mask) + x)
        out: Tensor = self.norm(self.ffn(x) + x)
        return out


class Decoder(nn.Module):
    """Write the target: itself under a mask, the memory, feed-forward; one norm after each."""

    def __init__(self, d_model: int, heads: int, hidden: int) -> None:
        super().__init__()
        self.masked_attention = MultiHeadAttention(d_model, heads)
        self.cross_attention = MultiHeadAttention(d_model, heads)
        self.ffn = FeedForward(d_model, hidden)
        self.norm = nn.LayerNorm(d_model)

    def forward(
        self, x: Tensor, memory: Tensor, mask: Tensor | None, memory_mask: Tensor | None = None
    ) -> Tensor:
        """Map x (B, T, D), positions included, and memory (B, S, D) to (B, T, D)."""
        x = self.norm(self.masked_attention(x, x, x, mask) + x)
        x = self.norm(self.cross_attention(x, memory, memory, memory_mask) + x)
        out: Tensor = self.norm(self.ffn(x) + x)
        return out


class Transformer(nn.Module):
    """Put tokens in front and logits behind, each by one plain table, to make a whole model."""

    def __init__(
        self,
        src_vocab: int,
        tgt_vocab: int,
        d_model: int = 512,
        heads: int = 2,
        hidden: int = 1024,
        src_pad: int = 0,
        tgt_pad: int = 0,
    ) -> None:
        super().__init__()
        require_sizes(src_vocab=src_vocab, tgt_vocab=tgt_vocab, d_model=d_model)
        self.src_pad, self.tgt_pad = src_pad, tgt_pad
        self.src_embedding = nn.Embedding(src_vocab, d_model)
        self.tgt_embedding = nn.Embedding(tgt_vocab, d_model)
        self.encoder = Encoder(d_model, heads, hidden)
        self.decoder = Decoder(d_model, heads, hidden)
        self.output = nn.Linear(d_model, tgt_vocab)

    def forward(self, src: Tensor, tgt: Tensor) -> Tensor:
        """Map tokens src (B, S) and tgt (B, T) to raw logits (B, T, V)."""
        return self.decode(tgt, self.encode(src), src)

    def encode(self, src: Tensor) -> Tensor:
        """Map source tokens (B, S) to the memory (B, S, D)."""
        x = add_positions(embed(src, self.src_embedding))
        memory: Tensor = self.encoder(x, padding_mask(src, self.src_pad))
        return memory

    def decode(self, tgt: Tensor, memory: Tensor, src: Tensor) -> Tensor:
        """Map tgt (B, T), memory (B, S, D) and its tokens src (B, S) to raw logits (B, T, V)."""
        mask = padding_mask(tgt, self.tgt_pad) + causal_mask(tgt.size(-1), tgt.device)
        x = add_positions(embed(tgt, self.tgt_embedding))
        logits: Tensor = self.output(self.decoder(x, memory, mask, padding_mask(src, self.src_pad)))
        return logits


def embed(tokens: Tensor, table: nn.Embedding) -> Tensor:
    """Map tokens (B, S) to their rows (B, S, D); raise IndexError outside the vocabulary."""
    vocab = table.num_embeddings
    outside = (tokens < 0) | (tokens >= vocab)
    if outside.any():
        raise IndexError(
            f"token id {int(tokens[outside][0])} is outside the vocabulary of {vocab}; "
            f"use ids from 0 to {vocab - 1}"
        )
    rows: Tensor = table(tokens)
    return rows


def write_on(
    model: Transformer, src: Tensor, written: list[int], end: int, length: int
) -> list[int]:
    """Continue the tokens of one sentence by the best next token, up to `end` or `length`.

    src (1, S) is encoded once; `written` is the beginning, which is kept.
    """
    memory = model.encode(src)
    tokens = list(written)
    while len(tokens) < length:
        logits = model.decode(torch.tensor([tokens], device=src.device), memory, src)
        tokens.append(int(logits[0, -1].argmax()))
        if tokens[-1] == end:
            break
    return tokens
