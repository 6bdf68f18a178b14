"""A translation model around `torch.nn.Transformer`, with the parts that the library lacks.

The library brings attention, layers, norms and both stacks. It has no token embedding, no
positions, no padding masks and no output layer; this file has those alone.

Shapes in this file: B batch, S source length, T target length, D model width, V vocabulary.
Boolean masks follow the library: true HIDES a key. The mask builders carry `hide` in their names,
because much code, the library's own `scaled_dot_product_attention` included, means the opposite.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn


def check_sizes(**sizes: int) -> None:
    """Raise ValueError for the first named size below 1."""
    for name, size in sizes.items():
        if size < 1:
            raise ValueError(f"{name} is {size}; give a whole number of at least 1")


def check_heads(d_model: int, heads: int) -> None:
    """Raise ValueError unless `heads` heads share the width `d_model` evenly."""
    check_sizes(d_model=d_model, heads=heads)
    if d_model % heads:
        raise ValueError(
            f"d_model {d_model} cannot be shared among {heads} heads (remainder "
            f"{d_model % heads}); choose a d_model that is a multiple of heads"
        )


def check_dropout(dropout: float) -> None:
    """Raise ValueError unless 0 <= dropout < 1."""
    if not 0 <= dropout < 1:
        raise ValueError(f"dropout is {dropout}; give a probability of at least 0 and below 1")


def check_smoothing(smoothing: float) -> None:
    """Raise ValueError unless 0 <= smoothing <= 1; the library takes a negative rate for 0."""
    if not 0 <= smoothing <= 1:
        raise ValueError(f"smoothing is {smoothing}; give a share from 0 to 1")


def hide_padding(tokens: Tensor, pad: int) -> Tensor:
    """Return the key padding mask (B, S) of tokens (B, S): true on padding, which is hidden."""
    return tokens == pad


def hide_future(length: int, device: torch.device | str | None = None) -> Tensor:
    """Return the causal mask (T, T): true above the diagonal, on the keys ahead of a query."""
    check_sizes(length=length)
    return torch.ones(length, length, dtype=torch.bool, device=device).triu(1)


def sinusoidal_positions(length: int, d_model: int) -> Tensor:
    """Return the paper's position table (S, D) in float64, sine and cosine by turns.

    Columns 2i and 2i + 1 are the sine and cosine of position / 10000^(2i / D); when D is odd the
    last sine has no cosine. Vaswani et al. 2017, 3.5.
    """
    # On the CPU, because some accelerators have no float64.
    position = torch.arange(length, dtype=torch.float64, device="cpu")
    even = torch.arange(0, d_model, 2, dtype=torch.float64, device="cpu")
    angle = torch.outer(position, 10000.0 ** (-even / d_model))
    return torch.stack((angle.sin(), angle.cos()), dim=-1).flatten(1)[:, :d_model]


class PositionalEncoding(nn.Module):
    """Add sinusoidal positions to the input and apply dropout to the sum.

    The table is computed at each call: no length is too long, nothing has to be moved or saved, and
    it is rounded once, from float64 to whatever the input is.
    """

    def __init__(self, dropout: float = 0.1) -> None:
        super().__init__()
        check_dropout(dropout)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        """Map x (B, S, D) to (B, S, D)."""
        out: Tensor = self.dropout(x + sinusoidal_positions(x.size(-2), x.size(-1)).to(x))
        return out


class TokenEmbedding(nn.Module):
    """Look tokens up and scale them by sqrt(D) (Vaswani et al. 2017, 3.4).

    Rows are initialised with deviation 1 / sqrt(D), so that scaled ones have the size of positions.
    """

    def __init__(self, vocab: int, d_model: int) -> None:
        super().__init__()
        check_sizes(vocab=vocab, d_model=d_model)
        self.lookup = nn.Embedding(vocab, d_model)
        self.scale = math.sqrt(d_model)
        nn.init.normal_(self.lookup.weight, std=1 / self.scale)

    def forward(self, tokens: Tensor) -> Tensor:
        """Map token ids (B, S) to (B, S, D); raise IndexError for an id outside the vocabulary."""
        vocab = self.lookup.num_embeddings
        outside = (tokens < 0) | (tokens >= vocab)
        if outside.any():
            raise IndexError(
                f"token id {int(tokens[outside][0])} is outside the vocabulary of {vocab}; "
                f"use ids from 0 to {vocab - 1}"
            )
        rows: Tensor = self.lookup(tokens)
        return rows * self.scale


class Transformer(nn.Module):
    """Translate with `torch.nn.Transformer`: tokens of both sides in, raw logits out.

    `nested_tensors` turns on the library's shortcut that packs padded batches in evaluation. It is
    off by default: it is a prototype, which warns at its first use and refuses a batch of padding
    alone. The library uses it for post-norm with an even number of heads only.
    """

    def __init__(
        self,
        src_vocab: int,
        tgt_vocab: int,
        d_model: int = 512,
        heads: int = 8,
        layers: int = 6,
        d_ff: int = 2048,
        dropout: float = 0.1,
        *,
        src_pad: int = 0,
        tgt_pad: int = 0,
        norm_first: bool = False,
        nested_tensors: bool = False,
    ) -> None:
        super().__init__()
        check_heads(d_model, heads)
        check_sizes(layers=layers, d_ff=d_ff)
        self.src_pad = src_pad
        self.tgt_pad = tgt_pad
        self.source_embedding = TokenEmbedding(src_vocab, d_model)
        self.target_embedding = TokenEmbedding(tgt_vocab, d_model)
        self.positions = PositionalEncoding(dropout)
        self.transformer = _library_transformer(
            d_model, heads, layers, d_ff, dropout, norm_first, nested_tensors
        )
        self.generator = nn.Linear(d_model, tgt_vocab)

    def forward(self, src: Tensor, tgt: Tensor) -> Tensor:
        """Map tokens src (B, S) and tgt (B, T) to raw logits (B, T, V)."""
        return self.decode(tgt, self.encode(src), hide_padding(src, self.src_pad))

    def encode(self, src: Tensor) -> Tensor:
        """Map source tokens (B, S) to the memory (B, S, D).

        What stands at padded positions is the library's affair and differs among its paths.
        """
        x = self.positions(self.source_embedding(src))
        memory: Tensor = self.transformer.encoder(
            x, src_key_padding_mask=hide_padding(src, self.src_pad)
        )
        return memory

    def decode(self, tgt: Tensor, memory: Tensor, hide_memory: Tensor | None = None) -> Tensor:
        """Map tokens (B, T), memory (B, S, D), hidden keys (B, S) to raw logits (B, T, V)."""
        x = self.positions(self.target_embedding(tgt))
        states = self.transformer.decoder(
            x,
            memory,
            tgt_mask=hide_future(tgt.size(1), tgt.device),
            tgt_key_padding_mask=hide_padding(tgt, self.tgt_pad),
            memory_key_padding_mask=hide_memory,
        )
        logits: Tensor = self.generator(states)
        return logits


def _library_transformer(
    d_model: int,
    heads: int,
    layers: int,
    d_ff: int,
    dropout: float,
    norm_first: bool,
    nested_tensors: bool,
) -> nn.Transformer:
    # The library builds the same encoder itself, but gives no way to choose nested tensors there
    # and warns when it has to turn them off.
    encoder = nn.TransformerEncoder(
        nn.TransformerEncoderLayer(
            d_model, heads, d_ff, dropout, batch_first=True, norm_first=norm_first
        ),
        layers,
        nn.LayerNorm(d_model),
        enable_nested_tensor=nested_tensors and not norm_first and heads % 2 == 0,
    )
    # Its initialisation (Xavier on every matrix) reaches the encoder handed in as well.
    return nn.Transformer(
        d_model,
        heads,
        num_decoder_layers=layers,
        dim_feedforward=d_ff,
        dropout=dropout,
        custom_encoder=encoder,
        batch_first=True,
        norm_first=norm_first,
    )
