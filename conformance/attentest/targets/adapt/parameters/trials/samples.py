"""Samples of a component: what passes through a submodule in one call."""

from collections.abc import Sequence

import numpy as np

from attentest.targets.adapt.parameters.behaviour import BATCH, Fired, Sample
from attentest_spec.setting import Floats


def part_samples(component: str, fired: Fired | None) -> list[Sample]:
    """Return what passed through a submodule as a sample of `component`, if it can be one."""
    if fired is None:
        return []
    inputs = [batch_first(one) for one in distinct(fired.inputs) if one.ndim == 3]
    output = batch_first(fired.output)
    if component != "multi_head_attention":
        return [Sample((inputs[0],), output)] if len(inputs) == 1 else []
    inputs = [one for one in inputs if one.shape[-1] == output.shape[-1]]  # and no masks (B, Q, K)
    if not 1 <= len(inputs) <= 3 or output.ndim != 3:
        return []
    inputs.sort(key=lambda one: one.shape[1] != output.shape[1])
    query, key, value = inputs[0], inputs[min(1, len(inputs) - 1)], inputs[-1]
    causal = np.tril(np.ones((1, 1, query.shape[1], key.shape[1]), dtype=bool))
    # Nothing is padded in what is drawn, so that a mask, where one is given, can only be causal.
    return [Sample((query, key, value, mask), output) for mask in (None, causal)]


def distinct(arrays: Sequence[Floats]) -> list[Floats]:
    """Return the arrays without those that are equal to an earlier one."""
    found: list[Floats] = []
    for one in arrays:
        if not any(np.array_equal(one, other) for other in found):
            found.append(one)
    return found


def batch_first(array: Floats) -> Floats:
    """Return an array (B, L, ..) or (L, B, ..) as the first."""
    return array.swapaxes(0, 1) if array.ndim == 3 and array.shape[0] != BATCH else array
