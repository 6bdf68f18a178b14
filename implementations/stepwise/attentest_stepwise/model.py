"""A Transformer in five steps, each one a few explicit classes.

Step 1 embeds tokens and positions, step 2 makes the parts of a layer, step 3 the encoder, step 4
the decoder, step 5 the whole Transformer with its masks. Every class builds what it needs itself
and names each part it uses, so that any step can be read and tried alone.

Shapes in this file: B batch, S source length, T target length, H heads, D model width, E head
width, F inner width, V vocabulary. Q and K stand for any number of queries and keys. Masks are
true where attention is allowed.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Self

import torch
from torch import Tensor, nn

# Before the first step: refuse what cannot work, with the number in the message.


def require_size(name: str, size: int) -> None:
    """Raise ValueError when a size is below 1."""
    if size < 1:
        raise ValueError(f"{name} is {size}; give a whole number of at least 1")


def require_probability(drop_prob: float) -> None:
    """Raise ValueError unless 0 <= drop_prob < 1."""
    if not 0 <= drop_prob < 1:
        raise ValueError(f"dropout is {drop_prob}; give a probability of at least 0 and below 1")


def require_token_ids(tokens: Tensor, vocab_size: int) -> None:
    """Raise IndexError for the first token id that the vocabulary does not hold."""
    outside = (tokens < 0) | (tokens >= vocab_size)
    if outside.any():
        raise IndexError(
            f"token id {int(tokens[outside][0])} is outside the vocabulary of {vocab_size}; "
            f"use ids from 0 to {vocab_size - 1}"
        )


# Step 1. Embedding: what the token is, and where it stands.


class TokenEmbedding(nn.Module):
    """Look up a vector for each token, with no factor of sqrt(D)."""

    def __init__(self, vocab_size: int, d_model: int) -> None:
        super().__init__()
        require_size("vocab_size", vocab_size)
        require_size("d_model", d_model)
        self.table = nn.Embedding(vocab_size, d_model)

    def forward(self, tokens: Tensor) -> Tensor:
        """Map tokens (B, S) to (B, S, D); raise IndexError for an id outside the vocabulary."""
        require_token_ids(tokens, self.table.num_embeddings)
        vectors: Tensor = self.table(tokens)
        return vectors


def position_table(max_len: int, d_model: int) -> Tensor:
    """Return sin and cos of position / 10000^(2i / D), i = 0, 2, 4, .., as (max_len, D), float64.

    Sine goes to column i, cosine to column i + 1. As i already moves in steps of two, the exponent
    is twice the paper's: a choice of this course. When D is odd the last sine has no cosine.
    """
    # Float64 on the CPU, whatever the model's own: far positions need every digit of the angle.
    position = torch.arange(max_len, dtype=torch.float64, device="cpu")
    table = torch.zeros(max_len, d_model, dtype=torch.float64, device="cpu")
    for i in range(0, d_model, 2):
        angle = position / 10000 ** ((2 * i) / d_model)
        table[:, i] = torch.sin(angle)
        if i + 1 < d_model:
            table[:, i + 1] = torch.cos(angle)
    return table


class PositionalEmbedding(nn.Module):
    """Give the first S rows of a fixed table, one row per position.

    The table (max_len, D) is a buffer, so it is moved with the module and not trained; it stays out
    of the saved state, which therefore fits any max_len.
    """

    table: Tensor

    def __init__(self, d_model: int, max_len: int) -> None:
        super().__init__()
        require_size("d_model", d_model)
        require_size("max_len", max_len)
        # An empty tensor carries the default dtype and device: the table starts where weights do.
        table = position_table(max_len, d_model).to(torch.empty(()))
        self.register_buffer("table", table, persistent=False)

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        """Move like every module, then rebuild the table in full precision for its new home.

        Casting the old table up to float64 would carry the rounding of float32 along.
        """
        old_dtype, old_device = self.table.dtype, self.table.device
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]  # torch leaves it untyped
        if self.table.dtype != old_dtype or self.table.device != old_device:
            max_len, d_model = self.table.shape
            self.table = position_table(max_len, d_model).to(self.table)
        return self

    def forward(self, length: int) -> Tensor:
        """Return the rows (S, D) of positions 0 to S - 1; raise ValueError when S > max_len."""
        max_len = self.table.size(0)
        if length > max_len:
            raise ValueError(
                f"the input has {length} positions and the table max_len = {max_len}; "
                "shorten the input or build with a larger max_len"
            )
        return self.table[:length]


class TransformerEmbedding(nn.Module):
    """Sum token and position and apply dropout to the sum."""

    def __init__(self, vocab_size: int, d_model: int, max_len: int, drop_prob: float) -> None:
        super().__init__()
        require_probability(drop_prob)
        self.token = TokenEmbedding(vocab_size, d_model)
        self.position = PositionalEmbedding(d_model, max_len)
        self.dropout = nn.Dropout(drop_prob)

    def forward(self, tokens: Tensor) -> Tensor:
        """Map tokens (B, S) to (B, S, D)."""
        token = self.token(tokens)
        position = self.position(tokens.size(1))
        summed: Tensor = self.dropout(token + position)
        return summed


# Step 2. The parts of a layer: attention, heads, norm, feed-forward.


class ScaleDotProductAttention(nn.Module):
    """Compare every query with every key and average the values accordingly."""

    def forward(
        self,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        mask: Tensor | None = None,
        dropout: nn.Module | None = None,
    ) -> tuple[Tensor, Tensor]:
        """Return softmax(q k^T / sqrt(E)) v and the weights.

        q (B, H, Q, E), k (B, H, K, E), v (B, H, K, G), mask broadcastable to (B, H, Q, K)
        -> output (B, H, Q, G), weights (B, H, Q, K). A masked score becomes -10000, small enough
        next to usual scores and in the range of float16; a query whose keys are all masked has
        uniform weights. The model never passes `dropout`: its weights have none.
        """
        score = q @ k.transpose(2, 3) / math.sqrt(k.size(-1))
        if mask is not None:
            score = score.masked_fill(mask == 0, -10000)
        weights = torch.softmax(score, dim=-1)
        if dropout is not None:
            weights = dropout(weights)
        return weights @ v, weights


class MultiHeadAttention(nn.Module):
    """Project, split into heads, attend in each, put the heads together and project again."""

    def __init__(self, d_model: int, n_head: int) -> None:
        super().__init__()
        require_size("d_model", d_model)
        require_size("n_head", n_head)
        if d_model % n_head:
            raise ValueError(
                f"d_model {d_model} cannot be shared among {n_head} heads "
                f"(remainder {d_model % n_head}); choose a d_model that is a multiple of n_head"
            )
        self.n_head = n_head
        self.attention = ScaleDotProductAttention()
        self.w_q = nn.Linear(d_model, d_model)
        self.w_k = nn.Linear(d_model, d_model)
        self.w_v = nn.Linear(d_model, d_model)
        self.linear = nn.Linear(d_model, d_model)

    def forward(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
        """Map q (B, Q, D), k and v (B, K, D) to (B, Q, D).

        The mask brings its own head axis: it must broadcast to (B, H, Q, K).
        """
        q, k, v = self.split(self.w_q(q)), self.split(self.w_k(k)), self.split(self.w_v(v))
        context, _ = self.attention(q, k, v, mask)
        out: Tensor = self.linear(self.merge(context))
        return out

    def split(self, x: Tensor) -> Tensor:
        """Cut features into heads: (B, K, D) -> (B, H, K, E)."""
        batch, length, d_model = x.shape
        # The view cuts the last axis alone; only the transpose may bring the heads forward.
        return x.view(batch, length, self.n_head, d_model // self.n_head).transpose(1, 2)

    def merge(self, x: Tensor) -> Tensor:
        """Undo the split: (B, H, Q, E) -> (B, Q, D)."""
        batch, n_head, length, width = x.shape
        return x.transpose(1, 2).contiguous().view(batch, length, n_head * width)


class LayerNorm(nn.Module):
    """Show what a layer norm does; the model below uses the library's, whose eps is 1e-5.

    gamma (x - mean) / sqrt(var + eps) + beta over the last axis, with the biased variance.
    """

    def __init__(self, d_model: int, eps: float = 1e-12) -> None:
        super().__init__()
        require_size("d_model", d_model)
        self.gamma = nn.Parameter(torch.ones(d_model))
        self.beta = nn.Parameter(torch.zeros(d_model))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        """Map (.., D) to (.., D)."""
        # Half precision rounds 1e-12 to 0 and overflows on squares, so it is widened on the way.
        wide = x.float() if x.dtype in (torch.float16, torch.bfloat16) else x
        mean = wide.mean(-1, keepdim=True)
        var = wide.var(-1, unbiased=False, keepdim=True)
        normed = ((wide - mean) / torch.sqrt(var + self.eps)).to(x.dtype)
        return self.gamma * normed + self.beta


class PositionwiseFeedForward(nn.Module):
    """Widen every position to F features, apply ReLU and dropout, and narrow it to D again."""

    def __init__(self, d_model: int, hidden: int, drop_prob: float = 0.1) -> None:
        super().__init__()
        require_size("d_model", d_model)
        require_size("hidden", hidden)
        require_probability(drop_prob)
        self.linear1 = nn.Linear(d_model, hidden)
        self.relu = nn.ReLU()
        self.dropout = nn.Dropout(drop_prob)
        self.linear2 = nn.Linear(hidden, d_model)

    def forward(self, x: Tensor) -> Tensor:
        """Map (.., D) to (.., D)."""
        x = self.linear1(x)
        x = self.relu(x)
        x = self.dropout(x)
        out: Tensor = self.linear2(x)
        return out


# Step 3. The encoder: layers that attend to the source, with the norm after each sum.


class EncoderLayer(nn.Module):
    """Attend, add and norm; feed forward, add and norm."""

    def __init__(self, d_model: int, hidden: int, n_head: int, drop_prob: float) -> None:
        super().__init__()
        require_probability(drop_prob)
        self.attention = MultiHeadAttention(d_model, n_head)
        self.norm1 = nn.LayerNorm(d_model)
        self.dropout1 = nn.Dropout(drop_prob)
        self.ffn = PositionwiseFeedForward(d_model, hidden, drop_prob)
        self.norm2 = nn.LayerNorm(d_model)
        self.dropout2 = nn.Dropout(drop_prob)

    def forward(self, x: Tensor, src_mask: Tensor | None) -> Tensor:
        """Map x (B, S, D) to (B, S, D) under a mask that broadcasts to (B, H, S, S)."""
        attended = self.attention(x, x, x, src_mask)
        x = self.norm1(x + self.dropout1(attended))

        fed = self.ffn(x)
        out: Tensor = self.norm2(x + self.dropout2(fed))
        return out


class Encoder(nn.Module):
    """Embed the source and run it through all layers; no norm follows the last one."""

    def __init__(
        self,
        vocab_size: int,
        max_len: int,
        d_model: int,
        hidden: int,
        n_head: int,
        n_layers: int,
        drop_prob: float,
    ) -> None:
        super().__init__()
        require_size("n_layers", n_layers)
        self.emb = TransformerEmbedding(vocab_size, d_model, max_len, drop_prob)
        self.layers = nn.ModuleList(
            EncoderLayer(d_model, hidden, n_head, drop_prob) for _ in range(n_layers)
        )

    def forward(self, src: Tensor, src_mask: Tensor | None) -> Tensor:
        """Map source tokens (B, S) to the memory (B, S, D)."""
        return self.run_layers(self.emb(src), src_mask)

    def run_layers(self, x: Tensor, src_mask: Tensor | None) -> Tensor:
        """Map the embedded source (B, S, D) to the memory (B, S, D)."""
        for layer in self.layers:
            x = layer(x, src_mask)
        return x


# Step 4. The decoder: the same, with attention to the encoder's memory in the middle.


class DecoderLayer(nn.Module):
    """Attend to itself, attend to the memory, feed forward: add and norm after each."""

    def __init__(self, d_model: int, hidden: int, n_head: int, drop_prob: float) -> None:
        super().__init__()
        require_probability(drop_prob)
        self.self_attention = MultiHeadAttention(d_model, n_head)
        self.norm1 = nn.LayerNorm(d_model)
        self.dropout1 = nn.Dropout(drop_prob)
        self.enc_dec_attention = MultiHeadAttention(d_model, n_head)
        self.norm2 = nn.LayerNorm(d_model)
        self.dropout2 = nn.Dropout(drop_prob)
        self.ffn = PositionwiseFeedForward(d_model, hidden, drop_prob)
        self.norm3 = nn.LayerNorm(d_model)
        self.dropout3 = nn.Dropout(drop_prob)

    def forward(
        self, x: Tensor, memory: Tensor, trg_mask: Tensor | None, src_mask: Tensor | None
    ) -> Tensor:
        """Map x (B, T, D) and memory (B, S, D) to (B, T, D).

        `trg_mask` must broadcast to (B, H, T, T), `src_mask` to (B, H, T, S).
        """
        attended = self.self_attention(x, x, x, trg_mask)
        x = self.norm1(x + self.dropout1(attended))

        looked_up = self.enc_dec_attention(x, memory, memory, src_mask)
        x = self.norm2(x + self.dropout2(looked_up))

        fed = self.ffn(x)
        out: Tensor = self.norm3(x + self.dropout3(fed))
        return out


class Decoder(nn.Module):
    """Embed the target, run it through all layers and score every word of the vocabulary."""

    def __init__(
        self,
        vocab_size: int,
        max_len: int,
        d_model: int,
        hidden: int,
        n_head: int,
        n_layers: int,
        drop_prob: float,
    ) -> None:
        super().__init__()
        require_size("n_layers", n_layers)
        self.emb = TransformerEmbedding(vocab_size, d_model, max_len, drop_prob)
        self.layers = nn.ModuleList(
            DecoderLayer(d_model, hidden, n_head, drop_prob) for _ in range(n_layers)
        )
        self.linear = nn.Linear(d_model, vocab_size)

    def forward(
        self, trg: Tensor, memory: Tensor, trg_mask: Tensor | None, src_mask: Tensor | None
    ) -> Tensor:
        """Map target tokens (B, T) and memory (B, S, D) to raw logits (B, T, V)."""
        states = self.run_layers(self.emb(trg), memory, trg_mask, src_mask)
        logits: Tensor = self.linear(states)
        return logits

    def run_layers(
        self, x: Tensor, memory: Tensor, trg_mask: Tensor | None, src_mask: Tensor | None
    ) -> Tensor:
        """Map the embedded target (B, T, D) and memory (B, S, D) to states (B, T, D)."""
        for layer in self.layers:
            x = layer(x, memory, trg_mask, src_mask)
        return x


# Step 5. The whole Transformer, which makes its own masks.


def make_pad_mask(tokens: Tensor, pad: int) -> Tensor:
    """Return the mask (B, 1, 1, S) of tokens (B, S): true on KEYS that are not padding.

    Keys lie on the last axis. A mask over queries, (B, 1, S, 1), would leave padding in sight.
    """
    return (tokens != pad).unsqueeze(1).unsqueeze(2)


def make_no_peek_mask(length: int, device: torch.device | str | None = None) -> Tensor:
    """Return the lower triangle (T, T), diagonal included: a query sees no later key."""
    require_size("length", length)
    return torch.tril(torch.ones(length, length, dtype=torch.bool, device=device))


class Transformer(nn.Module):
    """Translate: tokens of a source and of a target so far in, logits of the next words out.

    Source and target may use different pad ids, and have vocabularies of their own.
    """

    def __init__(
        self,
        src_pad: int,
        trg_pad: int,
        src_vocab: int,
        trg_vocab: int,
        d_model: int = 512,
        n_head: int = 8,
        max_len: int = 5000,
        hidden: int = 2048,
        n_layers: int = 6,
        drop_prob: float = 0.1,
    ) -> None:
        super().__init__()
        self.src_pad = src_pad
        self.trg_pad = trg_pad
        shape = (max_len, d_model, hidden, n_head, n_layers, drop_prob)
        self.encoder = Encoder(src_vocab, *shape)
        self.decoder = Decoder(trg_vocab, *shape)

    def forward(self, src: Tensor, trg: Tensor) -> Tensor:
        """Map tokens src (B, S) and trg (B, T) to raw logits (B, T, V)."""
        return self.decode(trg, self.encode(src), self.make_src_mask(src))

    def encode(self, src: Tensor) -> Tensor:
        """Map source tokens (B, S) to the memory (B, S, D)."""
        memory: Tensor = self.encoder(src, self.make_src_mask(src))
        return memory

    def decode(self, trg: Tensor, memory: Tensor, src_mask: Tensor | None) -> Tensor:
        """Map target tokens (B, T), memory (B, S, D), mask (B, 1, 1, S) to logits (B, T, V)."""
        logits: Tensor = self.decoder(trg, memory, self.make_trg_mask(trg), src_mask)
        return logits

    def make_src_mask(self, src: Tensor) -> Tensor:
        """Return the source mask (B, 1, 1, S): no padding."""
        return make_pad_mask(src, self.src_pad)

    def make_trg_mask(self, trg: Tensor) -> Tensor:
        """Return the target mask (B, 1, T, T): no padding and nothing ahead."""
        return make_pad_mask(trg, self.trg_pad) & make_no_peek_mask(trg.size(1), trg.device)
