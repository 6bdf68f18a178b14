"""Blocks whose attention and feed-forward network both take the normed input of the block."""

import re

import numpy as np

from attentest.targets.adapt.parameters.found import Observed
from attentest.targets.adapt.parameters.units import units

_NAMES = re.compile(r"parallel|gpt_?j|neox|palm|falcon|phi|cohere", re.IGNORECASE)
"""Names of blocks that are parallel, with one norm or with two."""


def parallel(seen: Observed, name: str, *, later: bool = False) -> str:
    """Return that a layer is a parallel block, in a clause of a sentence; "" for any other one.

    All of its norms take its input, and the network takes what they give. With two norms it may
    be a layer whose second norm should take the sum: its name says that it is parallel then, or
    that it is made of parts of `later` models.
    """
    paths = [unit.path for unit in units(seen.module, seen.sizes.heads) if unit.kind == "norm"]
    if not paths or not seen.run.samples or not (len(paths) == 1 or later or _NAMES.search(name)):
        return ""
    x = np.asarray(seen.run.samples[0].inputs[0])
    norms = [one for one in seen.run.fired if one.path in paths]
    taken = [any(np.array_equal(given, x) for given in one.inputs) for one in norms]
    if len({one.path for one in norms}) != len(paths) or not all(taken):
        return ""
    normed = [one.output for one in norms]
    width = seen.sizes.d_model
    inner = [
        one.inputs[0]
        for one in seen.run.fired
        if one.path not in paths
        and [given.shape[-1] for given in one.inputs] == [width]
        and one.output.shape[-1] not in (width, 3 * width)
    ]
    if not inner or not all(any(np.array_equal(one, own) for own in normed) for one in inner):
        return ""
    return (
        f"its attention and its network both take the input normed by {' and '.join(paths)}: it is "
        f"a parallel block, which is judged in a whole decoder-only model alone. Its parts can be "
        f"judged one by one"
    )
