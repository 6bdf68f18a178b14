"""The positional encoding, from the formulas (section 3.5)."""

from typing import Annotated

import numpy as np

from attentest_spec.parameters import first_position, learned_positions
from attentest_spec.setting import Array, Floats, Setting, reported


@reported
def positional_encoding(
    given: Setting, x: Annotated[Floats, "B L D"]
) -> Annotated[Floats, "B L D"]:
    """Add to x the row of each position, the same for every sample.

    x (B, L, D) gives (B, L, D). Raises IndexError where a learned table has fewer than L
    rows. Source: section 3.5.
    """
    length, width = x.shape[-2:]
    return x + table(given, length, width)


def table(given: Setting, length: int, d_model: int) -> Annotated[Floats, "{length} {d_model}"]:
    """Return the rows (length, d_model) that the choices add to the first positions.

    Choices: `positional_encoding`, `position_offset`, `position_arithmetic`. Raises IndexError
    where a learned table has fewer rows. Source: section 3.5.
    """
    choices = given.choices
    if choices.positional_encoding == "none":
        return np.zeros((length, d_model))
    if learned_positions(choices):
        return _learned(given, length)
    places = first_position(choices) + np.arange(length)
    waves = _arranged(choices.positional_encoding, places[:, None], d_model)
    single = choices.position_arithmetic == "float32"
    return waves.astype(np.float32).astype(np.float64) if single else waves


def _arranged(option: str, position: Array, d_model: int) -> Floats:
    """Return the sines and cosines of positions (S, 1) in the order of `option`."""
    if option == "halves-inclusive":
        return _inclusive(position, d_model)
    waves = _waves(position, d_model, doubling=2 if option == "doubled-exponent" else 1)
    return np.concatenate([waves[:, 0::2], waves[:, 1::2]], axis=1) if option == "halves" else waves


def _waves(position: Array, d_model: int, doubling: int) -> Floats:
    """Return sin and cos of p / 10000^(2i/d) in turn; an odd width ends in a sine.

    The division is by the power, as in the paper; an exponential of a logarithm rounds once more
    before the position multiplies what was lost.
    """
    column = np.arange(d_model)
    pair = column // 2
    angle = position / 10000.0 ** (doubling * 2 * pair / d_model)
    return np.where(column % 2 == 0, np.sin(angle), np.cos(angle))


def _inclusive(position: Array, d_model: int) -> Floats:
    """Return all sines and then all cosines of p / 10000^(i/(n-1)) for n pairs.

    The last power is 10000 itself, one pair alone has the power 1, and an odd width ends in 0.
    """
    pairs = d_model // 2
    angle = position / 10000.0 ** (np.arange(pairs) / max(pairs - 1, 1))
    odd = np.zeros((len(position), d_model % 2))
    return np.concatenate([np.sin(angle), np.cos(angle), odd], axis=1)


def _learned(given: Setting, length: int) -> Floats:
    rows, first = given["weight"], first_position(given.choices)
    if first + length > len(rows):
        served = max(len(rows) - first, 0)
        raise IndexError(f"{length} positions were requested, and the table has {served} rows.")
    scaled = given.choices.positional_encoding == "learned-scaled"
    return rows[first : first + length] / (np.sqrt(rows.shape[-1]) if scaled else 1.0)
