"""Start of the training: weights that are the same for all whose choices give them a place."""

import re
import zlib
from collections.abc import Mapping

import numpy as np

from attentest.studies.comparison.weights import compared
from attentest.studies.learning.learner import Layout
from attentest_spec.setting import Array, Floats


def weights(layout: Layout, seed: int) -> dict[str, Floats]:
    """Return the parameters of a `layout` at the start.

    Matrices are Xavier-uniform, gains 1, biases 0. Each parameter is drawn for itself, by its name:
    it is the same under all choices that give it the same shape. A tied one is the one that it is
    tied to.
    """
    twins = layout.twins
    table = layout.shapes
    return {name: _drawn(twins.get(name, name), shape, seed) for name, shape in table.items()}


def _drawn(name: str, shape: tuple[int, ...], seed: int) -> Floats:
    if len(shape) == 1:
        return np.full(shape, float(name.endswith("gain")))
    rng = np.random.default_rng([seed, zlib.crc32(name.encode())])
    bound = (6 / sum(shape)) ** 0.5
    return rng.uniform(-bound, bound, size=shape)


def roots(parameters: Mapping[str, Array], twins: Mapping[str, str]) -> dict[str, Array]:
    """Return `parameters` without those that are tied to another."""
    return {name: values for name, values in parameters.items() if name not in twins}


def whole(parameters: Mapping[str, Array], twins: Mapping[str, str]) -> dict[str, Array]:
    """Return `parameters` with those that are tied to one of them."""
    return {**parameters, **{name: parameters[root] for name, root in twins.items()}}


def unequal(layouts: Mapping[str, Layout]) -> tuple[str, ...]:
    """Return what cannot start equal in the backends, by their names, in sentences."""
    tables = {name: one.shapes for name, one in layouts.items()}
    every, differing, missing = compared(tables)
    told = []
    if differing:
        told.append(
            f"{len(differing)} of {len(every)} weights have different shapes "
            f"({_kinds(differing)}): they "
            f"are drawn from the same seed, and are not the same."
        )
    for name, lacking in missing.items():
        told.append(
            f"{name} has no place for {len(lacking)} of {len(every)} weights ({_kinds(lacking)})."
        )
    if len({one.choices.tying for one in layouts.values() if one.component != "encoder"}) > 1:
        told.append("What is tied in one starts as one of the matrices that are apart in another.")
    return tuple(told)


def _kinds(names: list[str], most: int = 4) -> str:
    """Return `names` without stack and layer, each once."""
    short = list(dict.fromkeys(re.sub(r".*\.layers\.\d+\.", "", name) for name in names))
    return ", ".join(short[:most]) + (f" and {len(short) - most} more" if len(short) > most else "")
