"""A Transformer written next to the paper, one small function or class per idea.

The design is that of the "Annotated Transformer": deep copies of one prototype, layers that pass
their sublayers to a residual wrapper as functions, and a builder of the whole model.

Shapes in this file: B batch, S source length, T target length, H heads, D model width, E head
width, F inner width, V vocabulary. Q and K stand for any number of queries and keys. Masks are
true where attention is allowed.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from typing import Self

import torch
from torch import Tensor, nn
from torch.nn import functional

# --- Guards -------------------------------------------------------------------------------------


def check_sizes(**sizes: int) -> None:
    """Raise ValueError for the first named size below 1."""
    for name, size in sizes.items():
        if size < 1:
            raise ValueError(f"{name} is {size}; give a whole number of at least 1")


def check_heads(d_model: int, h: int) -> None:
    """Raise ValueError unless `h` heads share the width `d_model` evenly."""
    check_sizes(d_model=d_model, h=h)
    if d_model % h:
        raise ValueError(
            f"d_model {d_model} cannot be shared among {h} heads (remainder {d_model % h}); "
            "choose a d_model that is a multiple of h"
        )


def make_dropout(p: float) -> nn.Dropout:
    """Return a dropout module; raise ValueError unless 0 <= p < 1."""
    if not 0 <= p < 1:
        raise ValueError(f"dropout is {p}; give a probability of at least 0 and below 1")
    return nn.Dropout(p)


def clones(module: nn.Module, n: int) -> nn.ModuleList:
    """Return `module` and deep copies of it: `n`, equal at first, each with its own parameters."""
    check_sizes(copies=n)
    return nn.ModuleList([module, *(copy.deepcopy(module) for _ in range(n - 1))])


# --- Attention ----------------------------------------------------------------------------------


def attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None = None,
    dropout: nn.Module | None = None,
) -> tuple[Tensor, Tensor]:
    """Return softmax(query key^T / sqrt(E)) value, and the weights that were used.

    query (B, H, Q, E), key (B, H, K, E), value (B, H, K, G), mask broadcastable to (B, H, Q, K)
    -> output (B, H, Q, G), weights (B, H, Q, K). A query whose keys are all masked spreads its
    weight evenly. Float16 cannot hold the fill of -1e9: torch raises RuntimeError there. Vaswani
    et al. 2017, 3.2.1.
    """
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.size(-1))
    if mask is not None:
        scores = scores.masked_fill(mask == 0, -1e9)
    weights = scores.softmax(dim=-1)
    if dropout is not None:
        weights = dropout(weights)
    return weights @ value, weights


class MultiHeadedAttention(nn.Module):
    """Attend in `h` subspaces of width D / h at once, then mix the answers.

    `linears` are the projections of query, key, value and output, in this order; `attn` holds the
    last weights (B, H, Q, K), for plots. Vaswani et al. 2017, 3.2.2.
    """

    def __init__(self, h: int, d_model: int, dropout: float = 0.1) -> None:
        super().__init__()
        check_heads(d_model, h)
        self.d_k = d_model // h
        self.h = h
        self.linears = clones(nn.Linear(d_model, d_model), 4)
        self.dropout = make_dropout(dropout)
        self.attn: Tensor | None = None

    def forward(
        self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None
    ) -> Tensor:
        """Map query (B, Q, D), key and value (B, K, D), mask (B, 1 or Q, K) to (B, Q, D)."""
        if mask is not None:
            mask = mask.unsqueeze(1)  # one mask serves all heads
        query, key, value = (
            self.split(linear(x))
            for linear, x in zip(self.linears, (query, key, value), strict=False)
        )
        x, weights = attention(query, key, value, mask, self.dropout)
        # Detached: a tensor with a history cannot be deep-copied and keeps the graph alive.
        self.attn = weights.detach()
        mixed: Tensor = self.linears[-1](self.merge(x))
        return mixed

    def split(self, x: Tensor) -> Tensor:
        """Cut the features into heads: (B, K, D) -> (B, H, K, E)."""
        return x.view(x.size(0), -1, self.h, self.d_k).transpose(1, 2)

    def merge(self, x: Tensor) -> Tensor:
        """Lay the heads side by side again: (B, H, Q, E) -> (B, Q, D)."""
        return x.transpose(1, 2).contiguous().view(x.size(0), -1, self.h * self.d_k)


# --- The other parts ----------------------------------------------------------------------------


class PositionwiseFeedForward(nn.Module):
    """Apply two linear maps with a ReLU between, D -> F -> D, to every position alone."""

    def __init__(self, d_model: int, d_ff: int, dropout: float = 0.1) -> None:
        super().__init__()
        check_sizes(d_model=d_model, d_ff=d_ff)
        self.w_1 = nn.Linear(d_model, d_ff)
        self.w_2 = nn.Linear(d_ff, d_model)
        self.dropout = make_dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        """Map (.., D) to (.., D)."""
        out: Tensor = self.w_2(self.dropout(self.w_1(x).relu()))
        return out


class Embeddings(nn.Module):
    """Look tokens up and scale them by sqrt(D), so that positions do not drown them (3.4)."""

    def __init__(self, d_model: int, vocab: int) -> None:
        super().__init__()
        check_sizes(d_model=d_model, vocab=vocab)
        self.lut = nn.Embedding(vocab, d_model)
        self.d_model = d_model

    def forward(self, x: Tensor) -> Tensor:
        """Map token ids (B, S) to (B, S, D); raise IndexError for an id outside the vocabulary."""
        vocab = self.lut.num_embeddings
        outside = (x < 0) | (x >= vocab)
        if outside.any():
            raise IndexError(
                f"token id {int(x[outside][0])} is outside the vocabulary of {vocab}; "
                f"use ids from 0 to {vocab - 1}"
            )
        looked_up: Tensor = self.lut(x)
        return looked_up * math.sqrt(self.d_model)


def sinusoids(length: int, d_model: int) -> Tensor:
    """Return the position table (length, D) in float64: sine on even, cosine on odd columns.

    Column pair i turns by 10000^(-2i / D) per position, computed in log space. When D is odd the
    last sine has no cosine. Vaswani et al. 2017, 3.5.
    """
    # The CPU always has float64, some accelerators do not; half an ulp of float32 in a frequency
    # is already a visible error at position 5000.
    position = torch.arange(length, dtype=torch.float64, device="cpu").unsqueeze(1)
    even = torch.arange(0, d_model, 2, dtype=torch.float64, device="cpu")
    angle = position * torch.exp(even * -(math.log(10000.0) / d_model))
    table = torch.zeros(length, d_model, dtype=torch.float64, device="cpu")
    table[:, 0::2] = torch.sin(angle)
    table[:, 1::2] = torch.cos(angle[:, : d_model // 2])
    return table


class PositionalEncoding(nn.Module):
    """Add a fixed wave per feature that encodes the position, then apply dropout.

    The table `pe` (1, max_len, D) is a buffer: not trained, moved with the module, and left out of
    the state, which then fits a model of any max_len.
    """

    pe: Tensor

    def __init__(self, d_model: int, dropout: float = 0.1, max_len: int = 5000) -> None:
        super().__init__()
        check_sizes(d_model=d_model, max_len=max_len)
        self.dropout = make_dropout(dropout)
        # An empty tensor has the default dtype and device, as new parameters have.
        pe = sinusoids(max_len, d_model).unsqueeze(0).to(torch.empty(()))
        self.register_buffer("pe", pe, persistent=False)

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        """Move as any module does, and compute the table anew for its new dtype.

        A float32 table turned into float64 would keep float32's errors.
        """
        before = self.pe
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]  # torch leaves it untyped
        if (self.pe.dtype, self.pe.device) != (before.dtype, before.device):
            _, max_len, d_model = self.pe.shape
            self.pe = sinusoids(max_len, d_model).unsqueeze(0).to(self.pe)
        return self

    def forward(self, x: Tensor) -> Tensor:
        """Add positions to x (B, S, D); raise ValueError when S is above max_len."""
        length, max_len = x.size(1), self.pe.size(1)
        if length > max_len:
            raise ValueError(
                f"the input has {length} positions and the table max_len = {max_len}; "
                "shorten the input or build with a larger max_len"
            )
        out: Tensor = self.dropout(x + self.pe[:, :length].to(x.dtype))
        return out


class LayerNorm(nn.Module):
    """Centre every position and divide by its sample deviation: a_2 (x - mean) / (std + eps) + b_2.

    The deviation divides by D - 1 and eps is outside of the root, other than in torch's layer norm.
    A single feature has no sample deviation: ValueError.
    """

    def __init__(self, features: int, eps: float = 1e-6) -> None:
        super().__init__()
        if features < 2:
            raise ValueError(
                f"features is {features}; a sample deviation takes at least 2, give a wider model"
            )
        self.a_2 = nn.Parameter(torch.ones(features))
        self.b_2 = nn.Parameter(torch.zeros(features))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        """Map (.., D) to (.., D)."""
        mean = x.mean(-1, keepdim=True)
        return self.a_2 * (x - mean) / (self._std(x) + self.eps) + self.b_2

    @staticmethod
    def _std(x: Tensor) -> Tensor:
        """Return the sample deviation (.., 1), with slope 0 where it is 0.

        The slope of a root at 0 is 0 / 0, and masking the result alone would not help, as 0 times
        NaN stays NaN. So a row without spread lends its place to a ramp before the root and gets
        its own 0 after it; autograd never meets the quotient, and no value changes.
        """
        flat = x.detach().std(-1, keepdim=True) == 0
        ramp = torch.arange(x.size(-1), dtype=x.dtype, device=x.device)
        return torch.where(flat, ramp, x).std(-1, keepdim=True).masked_fill(flat, 0.0)


class SublayerConnection(nn.Module):
    """Wrap a sublayer as x + dropout(sublayer(norm(x))): the norm comes first ("pre-norm").

    The paper norms last, LayerNorm(x + Sublayer(x)); norming first leaves the path of x untouched,
    which trains more easily, and asks for one more norm at the end of a stack.
    """

    def __init__(self, size: int, dropout: float) -> None:
        super().__init__()
        self.norm = LayerNorm(size)
        self.dropout = make_dropout(dropout)

    def forward(self, x: Tensor, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        """Map (B, S, D) to (B, S, D) through `sublayer`, any function that keeps the shape."""
        branch: Tensor = self.dropout(sublayer(self.norm(x)))
        return x + branch


# --- Layers and stacks --------------------------------------------------------------------------


class EncoderLayer(nn.Module):
    """Join self-attention and feed-forward, each in a residual wrapper of its own."""

    def __init__(
        self, size: int, self_attn: nn.Module, feed_forward: nn.Module, dropout: float
    ) -> None:
        super().__init__()
        self.self_attn = self_attn
        self.feed_forward = feed_forward
        self.sublayer = clones(SublayerConnection(size, dropout), 2)
        self.size = size

    def forward(self, x: Tensor, mask: Tensor | None) -> Tensor:
        """Map x (B, S, D) to (B, S, D) under mask (B, 1, S)."""
        x = self.sublayer[0](x, lambda x: self.self_attn(x, x, x, mask))
        out: Tensor = self.sublayer[1](x, self.feed_forward)
        return out


class DecoderLayer(nn.Module):
    """Join masked self-attention, attention to the encoder's memory, and feed-forward."""

    def __init__(
        self,
        size: int,
        self_attn: nn.Module,
        src_attn: nn.Module,
        feed_forward: nn.Module,
        dropout: float,
    ) -> None:
        super().__init__()
        self.size = size
        self.self_attn = self_attn
        self.src_attn = src_attn
        self.feed_forward = feed_forward
        self.sublayer = clones(SublayerConnection(size, dropout), 3)

    def forward(
        self, x: Tensor, memory: Tensor, src_mask: Tensor | None, tgt_mask: Tensor | None
    ) -> Tensor:
        """Map x (B, T, D), memory (B, S, D), masks (B, 1, S) and (B, T, T) to (B, T, D)."""
        m = memory
        x = self.sublayer[0](x, lambda x: self.self_attn(x, x, x, tgt_mask))
        x = self.sublayer[1](x, lambda x: self.src_attn(x, m, m, src_mask))
        out: Tensor = self.sublayer[2](x, self.feed_forward)
        return out


class Encoder(nn.Module):
    """Stack `n` copies of a layer and norm once at the end, as pre-norm layers do not."""

    def __init__(self, layer: EncoderLayer, n: int) -> None:
        super().__init__()
        self.layers = clones(layer, n)
        self.norm = LayerNorm(layer.size)

    def forward(self, x: Tensor, mask: Tensor | None) -> Tensor:
        """Map embedded x (B, S, D) to the memory (B, S, D) under mask (B, 1, S)."""
        for layer in self.layers:
            x = layer(x, mask)
        out: Tensor = self.norm(x)
        return out


class Decoder(nn.Module):
    """Stack `n` copies of a decoder layer and norm once at the end."""

    def __init__(self, layer: DecoderLayer, n: int) -> None:
        super().__init__()
        self.layers = clones(layer, n)
        self.norm = LayerNorm(layer.size)

    def forward(
        self, x: Tensor, memory: Tensor, src_mask: Tensor | None, tgt_mask: Tensor | None
    ) -> Tensor:
        """Map x (B, T, D), memory (B, S, D), masks (B, 1, S) and (B, T, T) to (B, T, D)."""
        for layer in self.layers:
            x = layer(x, memory, src_mask, tgt_mask)
        out: Tensor = self.norm(x)
        return out


# --- The whole model ----------------------------------------------------------------------------


class Generator(nn.Module):
    """Turn decoder states into log-probabilities over the vocabulary."""

    def __init__(self, d_model: int, vocab: int) -> None:
        super().__init__()
        check_sizes(d_model=d_model, vocab=vocab)
        self.proj = nn.Linear(d_model, vocab)

    def forward(self, x: Tensor) -> Tensor:
        """Map (B, T, D) to log-probabilities (B, T, V)."""
        return functional.log_softmax(self.proj(x), dim=-1)


class EncoderDecoder(nn.Module):
    """Hold the two stacks, the two embeddings and the generator.

    `forward` stops before the generator, which the caller applies: the loss wants it for every
    position, a search for the last position alone.
    """

    def __init__(
        self,
        encoder: Encoder,
        decoder: Decoder,
        src_embed: nn.Module,
        tgt_embed: nn.Module,
        generator: Generator,
    ) -> None:
        super().__init__()
        self.encoder = encoder
        self.decoder = decoder
        self.src_embed = src_embed
        self.tgt_embed = tgt_embed
        self.generator = generator

    def forward(self, src: Tensor, tgt: Tensor, src_mask: Tensor, tgt_mask: Tensor) -> Tensor:
        """Map tokens (B, S) and (B, T), masks (B, 1, S) and (B, T, T) to states (B, T, D)."""
        return self.decode(self.encode(src, src_mask), src_mask, tgt, tgt_mask)

    def encode(self, src: Tensor, src_mask: Tensor | None) -> Tensor:
        """Map source tokens (B, S) to the memory (B, S, D)."""
        memory: Tensor = self.encoder(self.src_embed(src), src_mask)
        return memory

    def decode(
        self, memory: Tensor, src_mask: Tensor | None, tgt: Tensor, tgt_mask: Tensor | None
    ) -> Tensor:
        """Map memory (B, S, D) and target tokens (B, T) to states (B, T, D)."""
        states: Tensor = self.decoder(self.tgt_embed(tgt), memory, src_mask, tgt_mask)
        return states


def make_model(
    src_vocab: int,
    tgt_vocab: int,
    n: int = 6,
    d_model: int = 512,
    d_ff: int = 2048,
    h: int = 8,
    dropout: float = 0.1,
    max_len: int = 5000,
) -> EncoderDecoder:
    """Build a model from one attention, one feed-forward, one position module and deep copies.

    Xavier draws every matrix anew at the end: only the initial biases are equal across copies.
    """
    c = copy.deepcopy
    attn = MultiHeadedAttention(h, d_model, dropout)
    ff = PositionwiseFeedForward(d_model, d_ff, dropout)
    position = PositionalEncoding(d_model, dropout, max_len)
    model = EncoderDecoder(
        Encoder(EncoderLayer(d_model, attn, ff, dropout), n),
        Decoder(DecoderLayer(d_model, c(attn), c(attn), c(ff), dropout), n),
        nn.Sequential(Embeddings(d_model, src_vocab), position),
        nn.Sequential(Embeddings(d_model, tgt_vocab), c(position)),
        Generator(d_model, tgt_vocab),
    )
    for parameter in model.parameters():
        if parameter.dim() > 1:
            nn.init.xavier_uniform_(parameter)
    return model


# --- Masks --------------------------------------------------------------------------------------


def make_src_mask(src: Tensor, pad: int) -> Tensor:
    """Return the mask (B, 1, S) of tokens (B, S): true on every token that is not `pad`."""
    return (src != pad).unsqueeze(-2)


def subsequent_mask(size: int, device: torch.device | str | None = None) -> Tensor:
    """Return the mask (1, T, T): true on and below the diagonal, so that no query sees ahead."""
    check_sizes(size=size)
    return torch.ones(1, size, size, dtype=torch.bool, device=device).tril()


def make_std_mask(tgt: Tensor, pad: int) -> Tensor:
    """Return the mask (B, T, T) of target tokens (B, T): no padding and no subsequent word."""
    return make_src_mask(tgt, pad) & subsequent_mask(tgt.size(-1), tgt.device)
