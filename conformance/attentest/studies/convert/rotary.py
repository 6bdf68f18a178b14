"""The order of the rows of queries and keys, by which columns of a head are turned together."""

import re
from collections.abc import Mapping

import numpy as np

from attentest_spec import Choices, Sizes
from attentest_spec.parameters import head_width
from attentest_spec.rotary import columns
from attentest_spec.setting import Array

_TURNED = re.compile(r"(^|\.)self_attention\.(query|key)(\.(weight|bias)|_norm\.(gain|bias))$")
"""The parameters with a row for each column of a head that is turned."""


def reordered(
    parameters: Mapping[str, Array], sizes: Sizes, ours: Choices, theirs: Choices
) -> tuple[dict[str, Array], list[str]]:
    """Return canonical parameters with rows as the other pairs need them, and their names.

    Scores are the same where queries and keys are reordered alike: every head of `ours` turns its
    pairs of columns, and one of `theirs` has the same pairs in other places.
    """
    order = _order(head_width(sizes, ours), ours, theirs)
    moved = [name for name in parameters if _TURNED.search(name)] if order is not None else []
    return {
        name: _by_heads(one, order) if name in moved and order is not None else one
        for name, one in parameters.items()
    }, moved


def _order(width: int, ours: Choices, theirs: Choices) -> Array | None:
    """Return which column of ours is each of `width` columns of theirs, None where all stay."""
    if "none" in (ours.attention_rotary, theirs.attention_rotary):
        return None
    order = np.arange(width)
    for own, other in zip(_places(ours, width), _places(theirs, width), strict=True):
        order[other] = own
    return None if np.array_equal(order, np.arange(width)) else order


def _places(choices: Choices, width: int) -> tuple[Array, Array, Array]:
    """Return the first and the second columns of all pairs, and those that are not turned."""
    one, other = columns(choices, width)
    return one, other, np.setdiff1d(np.arange(width), np.concatenate([one, other]))


def _by_heads(array: Array, order: Array) -> Array:
    """Return the array with the rows of every head in that order."""
    heads = array.reshape(-1, len(order), *array.shape[1:])
    return np.ascontiguousarray(heads[:, order]).reshape(array.shape)
