"""Decoding with kept keys and values, defined as decoding without them, prefix by prefix."""

from typing import Annotated

import numpy as np

from attentest_spec.model import decode, encode
from attentest_spec.setting import Floats, Setting, Tokens


def cached_decoding(
    given: Setting,
    source: Annotated[Tokens, "B S"],
    target: Annotated[Tokens, "B T"],
    chunks: Annotated[Tokens, "C"],
    after: Annotated[Tokens, "C"],
    origin: Annotated[Tokens, "C B"],
) -> Annotated[Floats, "B T V"]:
    """Return the generator's output for every token, each chunk after the prefix that it continues.

    The columns of a target (B, T) are given in chunks of the lengths `chunks` (C). Chunk c
    continues the prefixes up to the chunk `after` (C) names, or begins new ones where that is -1;
    its row b continues the row that `origin` (C, B) names, which has the same source. Source tokens
    (B, S) and the target give (B, T, V). Choice: `cache_positions`. Source: section 3.2.3.
    """
    memory = encode(given, source)
    prefixes: list[Tokens] = []
    found: list[Floats] = []
    parts = np.split(target, np.cumsum(chunks)[:-1], axis=1)
    for tokens, earlier, rows in zip(parts, after, origin, strict=True):
        before = prefixes[earlier][rows] if earlier >= 0 else target[:, :0]
        prefixes.append(np.concatenate([before, tokens], axis=1))
        answer = _without_cache(given, source, memory, prefixes[-1])
        found.append(answer[:, before.shape[1] :])
    return np.concatenate(found, axis=1)


def _without_cache(
    given: Setting,
    source: Annotated[Tokens, "B S"],
    memory: Annotated[Floats, "B S D"],
    prefix: Annotated[Tokens, "B L"],
) -> Annotated[Floats, "B L V"]:
    """Decode whole prefixes (B, L); where padding has no position, every row without it."""
    if given.choices.cache_positions == "columns":
        return decode(given, prefix, memory, source)
    found = np.zeros((*prefix.shape, given.sizes.target_vocabulary))
    for row, tokens in enumerate(prefix):
        real = tokens != given.sizes.target_pad
        one = slice(row, row + 1)
        if real.any():
            found[row, real] = decode(given, tokens[real][None], memory[one], source[one])[0]
    return found
