"""Norms of gradients by layer and part of a model, by the canonical names of its parameters."""

import re
from collections.abc import Mapping
from math import sqrt

import numpy as np

from attentest_spec.setting import Array

_IN_LAYER = re.compile(r".*?layers\.\d+\.\w+(?=\.)")


def part_of(name: str) -> str:
    """Return the part that the parameter `name` belongs to, with its layer where it has one."""
    found = _IN_LAYER.match(name)
    return found[0] if found else name.rpartition(".")[0]


def norms(gradients: Mapping[str, Array]) -> dict[str, float]:
    """Return the norm of the gradients of each part, in the order of the parameters."""
    squares: dict[str, float] = {}
    for name, values in gradients.items():
        part = part_of(name)
        squares[part] = squares.get(part, 0.0) + float(np.square(values, dtype=np.float64).sum())
    return {part: sqrt(total) for part, total in squares.items()}


def mean_norms(steps: list[dict[str, float]]) -> dict[str, float]:
    """Return the mean of the norms of several steps, by part."""
    return (
        {part: sum(one[part] for one in steps) / len(steps) for part in steps[0]} if steps else {}
    )
