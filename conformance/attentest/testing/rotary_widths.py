"""Widths of heads of which the declared part can be rotated."""

from collections.abc import Sequence

from attentest_spec import Choices
from attentest_spec.rotary import turned_width

WIDTHS = (8, 4, 16, 6, 12, 20, 32, 40, 64)
"""The widths of heads that are drawn, the first ones in most examples."""


def served_widths(choices: Choices, widths: Sequence[int] = WIDTHS) -> list[int]:
    """Return the widths of heads of which the declared part is an even number of columns.

    It has at least two pairs: with one of them the base and the kind of pairs do not show.
    """
    part = 1.0 if choices.rotary_width == "whole" else float(choices.rotary_width)
    exact = [
        width
        for width in widths
        if turned_width(choices, width) >= 4
        and abs(part * width - turned_width(choices, width)) < 1e-6
    ]
    return exact or [max(widths)]


def odd_widths(choices: Choices) -> list[int]:
    """Return odd widths of heads of which the declared part has pairs of columns alone.

    Whether a part that is itself odd is rounded up or down is open: the last column of the head is
    unchanged either way.
    """
    if choices.rotary_width == "whole":
        return [5, 7, 9]
    part = float(choices.rotary_width)
    paired = [width for width in range(5, 36, 2) if int(part * width) % 2 == 0]
    return [width for width in paired if turned_width(choices, width)][:3] or [5, 7, 9]


def turned_from(choices: Choices, width: int) -> int:
    """Return `width`, or where heads are turned the least served width that is no smaller."""
    if choices.attention_rotary == "none":
        return width
    served = sorted(served_widths(choices))
    return next((one for one in served if one >= width), served[-1])
