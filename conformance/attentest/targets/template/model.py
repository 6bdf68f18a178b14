"""A Transformer to be written: every part says what it has to do until it does it.

Shapes: B batch, S source length, T target length, H heads, D model width, E head width, F inner
width, V vocabulary, Q and K any number of queries and keys. Masks are True where a query may attend
to a key.
"""

import torch
from torch import Tensor, nn


def padding_mask(tokens: Tensor, pad: int) -> Tensor:
    """Return the mask (B, 1, 1, S) of tokens (B, S)."""
    raise NotImplementedError(
        "Write padding_mask: True on every key whose token is not `pad`. "
        "Read on: attentest explain masks.padding-keeps-exactly-real-tokens"
    )


def causal_mask(length: int, device: torch.device | None = None) -> Tensor:
    """Return the mask (1, 1, T, T) that lets no query see a later key."""
    raise NotImplementedError(
        "Write causal_mask: True on and below the diagonal. "
        "Read on: attentest explain masks.causal-blocks-future"
    )


def attention(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None
) -> tuple[Tensor, Tensor]:
    """Return the output (B, H, Q, E) and the weights (B, H, Q, K)."""
    raise NotImplementedError(
        "Write attention: softmax(query key^T / sqrt(E)) value, hidden keys at weight 0. "
        "Read on: attentest explain attention.formula"
    )


class MultiHeadAttention(nn.Module):
    """Attend in several heads, each on a slice of the width."""

    def __init__(self, d_model: int, heads: int) -> None:
        super().__init__()
        raise NotImplementedError(
            "Write MultiHeadAttention: projections query, key, value and output without bias, "
            "attention in `heads` slices between them. "
            "Read on: attentest explain multi_head_attention.formula"
        )


class FeedForward(nn.Module):
    """Widen every position, rectify, and narrow it again."""

    def __init__(self, d_model: int, d_ff: int) -> None:
        super().__init__()
        raise NotImplementedError(
            "Write FeedForward: outer(relu(inner(x))), two linear maps with biases. "
            "Read on: attentest explain feed_forward.formula"
        )


def add_positions(x: Tensor) -> Tensor:
    """Return x (B, S, D) plus the sines and cosines of its positions."""
    raise NotImplementedError(
        "Write add_positions: sin and cos of position / 10000^(2i / D) in turn, added to x. "
        "Read on: attentest explain positional_encoding.formula"
    )


class Embedding(nn.Module):
    """Look a vector up for every token."""

    def __init__(self, vocabulary: int, d_model: int) -> None:
        super().__init__()
        raise NotImplementedError(
            "Write Embedding: the rows of `table`, an nn.Embedding, times sqrt(D). "
            "Read on: attentest explain embedding.scale"
        )


class EncoderLayer(nn.Module):
    """Attend to the source and feed forward."""

    def __init__(self, d_model: int, heads: int, d_ff: int) -> None:
        super().__init__()
        raise NotImplementedError(
            "Write EncoderLayer: attention and feed_forward, and behind each sum with its input "
            "the norm named like it, attention_norm and feed_forward_norm. "
            "Read on: attentest explain encoder.layer-formula"
        )


class Encoder(nn.Module):
    """Pass the embedded source through all layers."""

    def __init__(self, d_model: int, heads: int, d_ff: int, layers: int) -> None:
        super().__init__()
        raise NotImplementedError(
            "Write Encoder: `layers` encoder layers, one after the other, in an nn.ModuleList. "
            "Read on: attentest explain encoder.formula"
        )


class DecoderLayer(nn.Module):
    """Attend to the target, attend to the memory, and feed forward."""

    def __init__(self, d_model: int, heads: int, d_ff: int) -> None:
        super().__init__()
        raise NotImplementedError(
            "Write DecoderLayer: an encoder layer with cross_attention and cross_attention_norm in "
            "the middle. Read on: attentest explain decoder.layer-formula"
        )


class Decoder(nn.Module):
    """Pass the embedded target through all layers."""

    def __init__(self, d_model: int, heads: int, d_ff: int, layers: int) -> None:
        super().__init__()
        raise NotImplementedError(
            "Write Decoder: `layers` decoder layers, one after the other, in an nn.ModuleList. "
            "Read on: attentest explain decoder.formula"
        )


class Transformer(nn.Module):
    """Turn a source and a target so far into logits of the next tokens."""

    def __init__(
        self,
        source_vocabulary: int,
        target_vocabulary: int,
        *,
        d_model: int,
        heads: int,
        d_ff: int,
        layers: int,
        source_pad: int,
        target_pad: int,
    ) -> None:
        super().__init__()
        raise NotImplementedError(
            "Write Transformer: source_embedding, target_embedding, encoder, decoder and the "
            "linear map generator, with the methods encode and decode. "
            "Read on: attentest explain model.formula"
        )
