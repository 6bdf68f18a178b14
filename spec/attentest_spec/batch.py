"""Batches: shifted targets with their masks, padded sequences, and packed ones."""

from typing import Annotated

import numpy as np

from attentest_spec.masks import padding_mask, target_mask
from attentest_spec.setting import Mask, Setting, Tokens


def batch(
    given: Setting, source: Annotated[Tokens, "B S"], target: Annotated[Tokens, "B T1"]
) -> tuple[
    Annotated[Tokens, "B T"],
    Annotated[Tokens, "B T"],
    Annotated[Mask, "B 1 1 S"],
    Annotated[Mask, "B 1 T T"],
    Annotated[Tokens, ""],
]:
    """Shift the target by one, and make the masks of what is read.

    `source` (B, S) and `target` (B, T1), one longer than what is read, give the input and the
    target of the decoder, each (B, T), the source mask (B, 1, 1, S), the target mask (B, 1, T, T)
    and the number of targets that count, of the shape (). Source: section 3.1.
    """
    sizes = given.sizes
    read, wanted = target[:, :-1], target[:, 1:]
    return (
        read,
        wanted,
        padding_mask(given, source, sizes.source_pad),
        target_mask(given, read, sizes.target_pad),
        np.asarray((wanted != sizes.target_pad).sum(), dtype=np.int64),
    )


def padded_batch(
    given: Setting, tokens: Annotated[Tokens, "N"], lengths: Annotated[Tokens, "B"]
) -> tuple[Annotated[Tokens, "B L"], Annotated[Mask, "B L"]]:
    """Pad sequences to one length, with tokens around them.

    `tokens` (N) are those of all sequences, and `lengths` (B) says where each one ends. They give
    the padded tokens (B, L) and the mask (B, L) of what belongs to a sequence. Choices:
    `sequence_marks`, `padding_side`.
    """
    rows = [marked(given, one) for one in split(tokens, lengths)]
    padded = np.full((len(rows), max(map(len, rows))), given.sizes.target_pad)
    keep = np.zeros(padded.shape, dtype=bool)
    for number, row in enumerate(rows):
        left = given.choices.padding_side == "left"
        place = slice(len(padded[0]) - len(row), None) if left else slice(0, len(row))
        padded[number, place], keep[number, place] = row, True
    return padded, keep


def packed_batch(
    given: Setting, tokens: Annotated[Tokens, "N"], lengths: Annotated[Tokens, "B"]
) -> tuple[
    Annotated[Tokens, "1 M"],
    Annotated[Tokens, "1 M"],
    Annotated[Tokens, "1 M"],
    Annotated[Mask, "1 1 M M"],
]:
    """Pack sequences into one row, each shifted by itself.

    `tokens` (N) are those of all sequences, their start and end among them, and `lengths` (B) says
    where each one ends. They give the input, the target and the positions, each (1, M), and the
    mask (1, 1, M, M).
    """
    rows = split(tokens, lengths)
    number = np.concatenate([np.full(len(row) - 1, place) for place, row in enumerate(rows)])
    position = np.concatenate([np.arange(len(row) - 1) for row in rows])
    own = number[:, None] == number[None, :]
    past = position[:, None] >= position[None, :]
    read, wanted = (np.concatenate([row[part] for row in rows])[None] for part in _SHIFT)
    return read, wanted, position[None], (own & past)[None, None]


_SHIFT = (slice(None, -1), slice(1, None))
"""The parts of a sequence that the decoder reads and has to give."""


def split(
    tokens: Annotated[Tokens, "N"], lengths: Annotated[Tokens, "B"]
) -> list[Annotated[Tokens, "L"]]:
    """Return the sequences, each of its own length (L), out of tokens (N) and lengths (B)."""
    return np.split(tokens, np.cumsum(lengths)[:-1])


def marked(given: Setting, row: Annotated[Tokens, "L"]) -> Annotated[Tokens, "L2"]:
    """Return a sequence (L) with the tokens around it, as (L2). Choice: `sequence_marks`."""
    start, end = [given.sizes.start], [given.sizes.end]
    around = {"start-and-end": (start, end), "end": ([], end), "none": ([], [])}
    before, after = around[given.choices.sequence_marks]
    result: Tokens = np.concatenate([before, row, after]).astype(np.int64)
    return result
