"""The whole model, from section 3.1 and figure 1; it makes its own masks."""

from typing import Annotated

from attentest_spec.decoder import decoder
from attentest_spec.embedding import embedding
from attentest_spec.encoder import encoder
from attentest_spec.generator import generator
from attentest_spec.masks import padding_mask, target_mask
from attentest_spec.norm import norm
from attentest_spec.positional_encoding import positional_encoding
from attentest_spec.setting import Floats, Setting, Tokens


def model(
    given: Setting, source: Annotated[Tokens, "B S"], target: Annotated[Tokens, "B T"]
) -> Annotated[Floats, "B T V"]:
    """Return the generator's output for every step of the target: it is about the next token.

    Source tokens (B, S) and target tokens (B, T) give (B, T, V), in evaluation mode. Raises
    IndexError for a token outside its vocabulary. Source: section 3.1 and figure 1.
    """
    return decode(given, target, encode(given, source), source)


def encode(given: Setting, source: Annotated[Tokens, "B S"]) -> Annotated[Floats, "B S D"]:
    """Return the memory (B, S, D) of source tokens (B, S), padding hidden from attention."""
    keep = padding_mask(given, source, given.sizes.source_pad)
    return encoder(given.under("encoder"), embed(given, "source", source), keep)


def decode(
    given: Setting,
    target: Annotated[Tokens, "B T"],
    memory: Annotated[Floats, "B S D"],
    source: Annotated[Tokens, "B S"],
) -> Annotated[Floats, "B T V"]:
    """Return the generator's output (B, T, V) for target tokens (B, T) and a memory (B, S, D).

    `source` (B, S) are the tokens of the memory: they show which of its rows are padding.
    """
    state = decoder(
        given.under("decoder"),
        embed(given, "target", target),
        memory,
        padding_mask(given, source, given.sizes.source_pad),
        target_mask(given, target, given.sizes.target_pad),
    )
    return generator(given.under("generator"), state)


def embed(
    given: Setting, side: str, tokens: Annotated[Tokens, "B L"]
) -> Annotated[Floats, "B L D"]:
    """Return the tokens of one `side`, "source" or "target", embedded and with positions.

    Tokens (B, L) give (B, L, D). Where the choice `embedding_norm` says so, the sum is normalised.
    """
    looked_up = embedding(given.under(f"{side}_embedding"), tokens)
    summed = positional_encoding(given.under(f"{side}_positions"), looked_up)
    if given.choices.embedding_norm == "none":
        return summed
    return norm(given.under(f"{side}_embedding_norm"), summed)
