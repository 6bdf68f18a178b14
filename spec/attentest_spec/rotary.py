"""Rotary positions, from the formulas (Su et al. 2021, section 3.4.2)."""

from typing import Annotated, NamedTuple

import numpy as np

from attentest_spec.choices import Choices
from attentest_spec.setting import Array, Floats, Setting, Tokens, reported
from attentest_spec.sizes import Sizes

FAST, SLOW = 32.0, 1.0
"""Turns over the trained length: from FAST on, `yarn` keeps a frequency; up to SLOW it divides."""

HIGH, LOW = 4.0, 1.0
"""The same for `llama3`."""


@reported
def rotary(
    given: Setting,
    x: Annotated[Floats, "B H L E"],
    positions: Annotated[Tokens, "B L"] | None = None,
) -> Annotated[Floats, "B H L E"]:
    """Turn the pairs of columns of x by angles that are proportional to the position.

    x (B, H, L, E) gives (B, H, L, E). `positions` (B, L) are those of the tokens, 0 to L - 1
    where there are none. Source: Su et al. 2021, section 3.4.2.
    """
    batch, _, length, _ = x.shape
    first = np.broadcast_to(np.arange(length), (batch, length))
    return turned(given, x, first if positions is None else positions)


def turned(
    given: Setting,
    x: Annotated[Floats, "B H L E"],
    places: Annotated[Array, "B L"],
    length: int = 0,
) -> Annotated[Floats, "B H L E"]:
    """Return x (B, H, L, E), turned as at `places` (B, L) of a text of `length` tokens."""
    cosines, sines = (one[:, None] for one in turns(given, places, x.shape[-1], length))
    one, other = columns(given.choices, x.shape[-1])
    a, b = x[..., one], x[..., other]
    result = x.copy()
    result[..., one] = a * cosines - b * sines
    result[..., other] = b * cosines + a * sines
    return result


class Turns(NamedTuple):
    """The cosines and sines (.., N) of the angles by which N pairs are turned."""

    cosines: Annotated[Floats, "*rows N"]
    sines: Annotated[Floats, "*rows N"]


def turns(given: Setting, places: Annotated[Array, "*rows"], width: int, length: int = 0) -> Turns:
    """Return cosines and sines (.., N) for positions (..) and heads of `width` columns.

    Choices: all whose names begin with `rotary`, `rotary_pairs` left out. The dynamic scaling
    depends on the greatest of the positions, or on `length` where it is given.
    """
    sizes, choices = given.sizes, given.choices
    longest = length or int(np.max(places, initial=0)) + 1
    angles = np.asarray(places)[..., None] * frequencies(sizes, choices, width, longest)
    backward = choices.rotary_direction == "backward"
    factor = magnitude(sizes, choices)
    found = factor * np.cos(angles), factor * np.sin(-angles if backward else angles)
    if choices.rotary_arithmetic == "float32":
        found = found[0].astype(np.float32).astype(float), found[1].astype(np.float32).astype(float)
    return Turns(*found)


def turned_width(choices: Choices, width: int) -> int:
    """Return how many of the `width` columns of a head are turned, an even number."""
    part = 1.0 if choices.rotary_width == "whole" else float(choices.rotary_width)
    return int(part * width) // 2 * 2


def columns(choices: Choices, width: int) -> tuple[Annotated[Array, "N"], Annotated[Array, "N"]]:
    """Return the first and the second columns (N) of all pairs that are turned.

    Choices: `rotary_pairs`, `rotary_width`, `rotary_partial`.
    """
    pair = np.arange(turned_width(choices, width) // 2)
    if choices.rotary_pairs == "adjacent":
        return 2 * pair, 2 * pair + 1
    return pair, pair + _whole(choices, width) // 2


def _whole(choices: Choices, width: int) -> int:
    """Return the width whose pairs and frequencies are used, an even number."""
    return width // 2 * 2 if _proportional(choices) else turned_width(choices, width)


def _proportional(choices: Choices) -> bool:
    return choices.rotary_partial == "proportional"


def magnitude(sizes: Sizes, choices: Choices) -> float:
    """Return the factor of the sines and cosines. Source: Peng et al. 2023, section 3.4."""
    if choices.rotary_magnitude != "as-scaling":
        return float(choices.rotary_magnitude)
    return (
        0.1 * float(np.log(sizes.rotary_factor)) + 1.0 if choices.rotary_scaling == "yarn" else 1.0
    )


def frequencies(sizes: Sizes, choices: Choices, width: int, length: int) -> Annotated[Floats, "N"]:
    """Return by how much each pair (N) is turned from one position to the next.

    Choices: `rotary_base`, `rotary_width`, `rotary_partial`, `rotary_scaling`. `width` is that of
    a head, and `length` is one more than the greatest position.
    """
    whole = _whole(choices, width)
    pair = np.arange(turned_width(choices, width) // 2)
    base = scaled_base(sizes, choices, whole, length)
    plain: Floats = 1.0 / base ** (2.0 * pair / whole)
    match choices.rotary_scaling:
        case "linear":
            return plain / sizes.rotary_factor
        case "yarn":
            kept = _kept_by_yarn(sizes, base, whole, pair)
        case "llama3":
            kept = _kept_by_llama3(sizes, plain)
        case _:
            return plain
    return kept * plain + (1.0 - kept) * plain / sizes.rotary_factor


def scaled_base(sizes: Sizes, choices: Choices, width: int, length: int) -> float:
    """Return the base for frequencies of `width` columns and texts of `length` positions.

    Dynamic scaling begins above the trained length L0, with the factor s length / L0 - (s - 1).

    Source: Peng et al. 2023, section 3.1; for dynamic scaling section 3.3, with the formula of
    published code, which has s there only at the length s L0.
    """
    base, factor = float(choices.rotary_base), sizes.rotary_factor
    if choices.rotary_scaling == "dynamic-ntk":
        factor = max(factor * length / sizes.trained_length - (factor - 1.0), 1.0)
    elif choices.rotary_scaling != "ntk":
        return base
    power = width / (width - 2) if width > 2 else 0.0
    return float(base * factor**power)


def _kept_by_yarn(
    sizes: Sizes, base: float, width: int, pair: Annotated[Array, "N"]
) -> Annotated[Floats, "N"]:
    """Return which share (N) of its own frequency each pair keeps.

    The ramp is linear in the number of the pair, and begins and ends at whole numbers, as in the
    code of the authors; section 3.2 of Peng et al. 2023 has one that is linear in the turns.
    """

    def place(full: float) -> float:
        """Return the number of the pair that turns `full` times over the trained length."""
        turns = sizes.trained_length / (2 * np.pi * full)
        return float(width * np.log(turns) / (2 * np.log(base)))

    low = max(np.floor(place(FAST)), 0.0)
    high = min(np.ceil(place(SLOW)), width - 1.0)
    ramp: Floats = 1.0 - np.clip((pair - low) / (high - low if high != low else 1e-3), 0.0, 1.0)
    return ramp


def _kept_by_llama3(sizes: Sizes, plain: Annotated[Floats, "N"]) -> Annotated[Floats, "N"]:
    """Return which share (N) of its own frequency each pair keeps, by its turns over L0."""
    full = sizes.trained_length * plain / (2 * np.pi)
    kept: Floats = np.clip((full - LOW) / (HIGH - LOW), 0.0, 1.0)
    return kept
