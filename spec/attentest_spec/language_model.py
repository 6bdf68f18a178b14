"""The decoder-only model: causal blocks between an embedding and a generator."""

from typing import Annotated

import numpy as np

from attentest_spec.choices import Choices
from attentest_spec.embedding import embedding
from attentest_spec.feed_forward import feed_forward
from attentest_spec.generator import generator
from attentest_spec.multi_head_attention import multi_head_attention
from attentest_spec.norm import norm
from attentest_spec.positional_encoding import table
from attentest_spec.setting import Array, Floats, Mask, Setting, Tokens, reported

ATTENTION, FEED_FORWARD = "self_attention", "feed_forward"


def language_model(
    given: Setting,
    tokens: Annotated[Tokens, "B T"],
    mask: Annotated[Mask, "B T"] | None = None,
    positions: Annotated[Tokens, "B T"] | None = None,
) -> Annotated[Floats, "B T V"]:
    """Return the generator's output for every token: it is about the next one.

    Tokens (B, T) give (B, T, V), in evaluation mode. `mask` (B, T) is False at padding, which is
    hidden from all other tokens; what is returned there is unspecified. `positions` (B, T) are
    those of the tokens; without them the choice `padded_positions` says where padding counts.
    Raises IndexError for a token outside of the vocabulary. Source: Radford et al. 2018, section
    3.1.
    """
    places = own_positions(given.choices, tokens, mask) if positions is None else positions
    x = embed(given, tokens, places)
    for number in range(given.sizes.layers):
        x = causal_layer(given.under(f"layers.{number}"), x, mask, places)
    if given.choices.final_norm == "present":
        x = norm(given.under("norm"), x)
    return generator(given.under("generator"), x)


def cached_language_model(
    given: Setting,
    tokens: Annotated[Tokens, "B T"],
    mask: Annotated[Mask, "B T"] | None,
    positions: Annotated[Tokens, "B T"] | None,
    chunks: Annotated[Tokens, "C"],
    after: Annotated[Tokens, "C"],
    origin: Annotated[Tokens, "C B"],
) -> Annotated[Floats, "B T V"]:
    """Return the output (B, T, V) of :func:`language_model`, after the texts that it continues.

    The columns of tokens, mask and positions (B, T) are given in chunks of the lengths `chunks`
    (C). Chunk c continues the texts up to the chunk `after` (C) names, or begins new ones where
    that is -1; its row b continues the row that `origin` (C, B) names. Source: Shazeer 2019,
    section 2.4.
    """
    texts: list[list[Array | None]] = []
    found: list[Floats] = []
    ends = np.cumsum(chunks)
    for start, end, earlier, rows in zip(ends - chunks, ends, after, origin, strict=True):
        text = [None if one is None else one[:, start:end] for one in (tokens, mask, positions)]
        if earlier >= 0:
            text = [
                None if old is None or new is None else np.concatenate([old[rows], new], axis=1)
                for old, new in zip(texts[earlier], text, strict=True)
            ]
        texts.append(text)
        whole: Floats = language_model(given, *text)  # type: ignore[arg-type]  # tokens are given
        found.append(whole[:, start - end :])
    return np.concatenate(found, axis=1)


@reported
def causal_layer(
    given: Setting,
    x: Annotated[Floats, "B T D"],
    mask: Annotated[Mask, "B T"] | None = None,
    positions: Annotated[Tokens, "B T"] | None = None,
) -> Annotated[Floats, "B T D"]:
    """Apply causal self-attention and the feed-forward network, each beside a residual path.

    x (B, T, D) gives (B, T, D); `mask` (B, T) and `positions` (B, T) are those of
    :func:`language_model`, with positions 0 to T - 1 where there are none. Choices:
    `block_norms`, `block_layout`, `norm_kind`, `packed_documents`.
    """
    if given.choices.block_layout == "sequential":
        attended = _closed(given, ATTENTION, x + _attention_branch(given, x, mask, positions))
        return _closed(given, FEED_FORWARD, attended + _feed_forward_branch(given, attended))
    both = _attention_branch(given, x, mask, positions) + _feed_forward_branch(given, x)
    return _closed(given, ATTENTION, x + both)


def own_positions(
    choices: Choices, tokens: Annotated[Tokens, "B T"], mask: Annotated[Mask, "B T"] | None
) -> Annotated[Array, "B T"]:
    """Return the positions (B, T) of tokens (B, T) that are given none, under `padded_positions`.

    `mask` (B, T) is True for real tokens.
    """
    if mask is None or choices.padded_positions == "columns":
        return np.broadcast_to(np.arange(tokens.shape[1]), tokens.shape)
    counted: Array = np.maximum(np.cumsum(mask, axis=1) - 1, 0)
    return counted


def embed(
    given: Setting, tokens: Annotated[Tokens, "B T"], places: Annotated[Array, "B T"]
) -> Annotated[Floats, "B T D"]:
    """Return the tokens (B, T) embedded, with the rows of their places (B, T) added, (B, T, D).

    Where the choice `embedding_norm` says so, the sum is normalised. Raises IndexError where a
    learned table of positions has fewer rows.
    """
    looked_up = embedding(given.under("embedding"), tokens)
    length = int(np.max(places, initial=0)) + 1
    rows = table(given.under("positions"), length, looked_up.shape[-1])
    summed: Floats = looked_up + rows[places]
    if given.choices.embedding_norm == "none":
        return summed
    return norm(given.under("embedding_norm"), summed)


def visible(
    length: int, mask: Annotated[Mask, "B T"] | None = None
) -> Annotated[Mask, "#B 1 {length} {length}"]:
    """Return which keys every query sees, (1, 1, length, length) or (B, 1, length, length).

    They are those up to its own, without padding, which `mask` (B, T) is False for. A padding
    query sees itself, so that it has a number; the number is of no meaning.
    """
    earlier = np.tril(np.ones((length, length), dtype=bool))[None, None]
    if mask is None:
        return earlier
    keep: Mask = (earlier & mask[:, None, None, :]) | np.eye(length, dtype=bool)
    return keep


def same_document(positions: Annotated[Tokens, "B T"]) -> Annotated[Mask, "B 1 T T"]:
    """Return which tokens are of one document, (B, 1, T, T), for positions (B, T).

    Later tokens are among them. A document begins at every position that is not one more than the
    last one.
    """
    begins = np.diff(positions, axis=1, prepend=positions[:, :1] - 1) != 1
    number = np.cumsum(begins, axis=1)
    same: Mask = number[:, None, :, None] == number[:, None, None, :]
    return same


def _attention_branch(
    given: Setting,
    x: Floats,
    mask: Annotated[Mask, "B T"] | None,
    positions: Annotated[Tokens, "B T"] | None,
) -> Floats:
    opened = _opened(given, ATTENTION, x)
    seen = visible(x.shape[1], mask)
    if given.choices.packed_documents == "by-positions" and positions is not None:
        seen = seen & same_document(positions)
    inner = given.under(ATTENTION)
    found = multi_head_attention(inner, opened, opened, opened, seen, positions)
    return _ended(given, ATTENTION, found)


def _feed_forward_branch(given: Setting, x: Floats) -> Floats:
    opened = _opened(given, FEED_FORWARD, x)
    return _ended(given, FEED_FORWARD, feed_forward(given.under(FEED_FORWARD), opened))


def _opened(given: Setting, name: str, x: Floats) -> Floats:
    """Return what the sublayer is given: the norm of x, or x itself."""
    if given.choices.block_norms not in ("pre", "sandwich"):
        return x
    shared = given.choices.block_layout == "parallel-one-norm"
    return norm(given.under(f"{ATTENTION if shared else name}_norm"), x)


def _ended(given: Setting, name: str, branch: Floats) -> Floats:
    """Return what the sublayer adds: its output, or the norm of that."""
    match given.choices.block_norms:
        case "post-branch":
            return norm(given.under(f"{name}_norm"), branch)
        case "sandwich":
            return norm(given.under(f"{name}_branch_norm"), branch)
        case _:
            return branch


def _closed(given: Setting, name: str, x: Floats) -> Floats:
    """Return what leaves the residual connection: the sum, or the norm of that."""
    return norm(given.under(f"{name}_norm"), x) if given.choices.block_norms == "post" else x
