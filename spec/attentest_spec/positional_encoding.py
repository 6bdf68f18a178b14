"""The positional encoding, from the formulas (section 3.5)."""

import numpy as np

from attentest_spec.setting import Floats, Setting, reported


@reported
def positional_encoding(given: Setting, x: Floats) -> Floats:
    """Add to x (B, S, D) the row of each position, the same for every sample.

    Raises IndexError where a learned table has fewer than S rows. Source: section 3.5.
    """
    length, width = x.shape[-2:]
    return x + table(given, length, width)


def table(given: Setting, length: int, d_model: int) -> Floats:
    """Return the rows (length, d_model) that the choice `positional_encoding` adds.

    Raises IndexError where a learned table has fewer rows. Source: section 3.5.
    """
    option = given.choices.positional_encoding
    if option == "none":
        return np.zeros((length, d_model))
    if option == "learned":
        return _learned(given["weight"], length)
    waves = _waves(length, d_model, doubling=2 if option == "doubled-exponent" else 1)
    if option == "halves":
        return np.concatenate([waves[:, 0::2], waves[:, 1::2]], axis=1)
    return waves


def _waves(length: int, d_model: int, doubling: int) -> Floats:
    """Return sin and cos of p / 10000^(2i/d) in turn; an odd width ends in a sine alone.

    The division is by the power, as in the paper: a power of the inverse, or an exponential of a
    logarithm, rounds once more before the position multiplies what was lost.
    """
    column = np.arange(d_model)
    pair = column // 2
    position = np.arange(length)[:, None]
    angle = position / 10000.0 ** (doubling * 2 * pair / d_model)
    return np.where(column % 2 == 0, np.sin(angle), np.cos(angle))


def _learned(rows: Floats, length: int) -> Floats:
    if length > len(rows):
        raise IndexError(f"{length} positions were asked for, and the table has {len(rows)} rows.")
    return rows[:length]
