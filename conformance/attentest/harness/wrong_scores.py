"""Softmaxes and losses that are wrong by the rounding of a constant or of a logarithm."""

from collections.abc import Mapping
from typing import Annotated

import numpy as np

from attentest_spec import Choices, Setting
from attentest_spec.attention import softmax
from attentest_spec.relative_bias import relative_bias
from attentest_spec.setting import Array, Floats

SIGNS = np.array([-1.0, 1.0])


def of_rounded_logarithms(
    unit: float, most: float, rng: np.random.Generator, raw: Annotated[Array, "*rows K"]
) -> Annotated[Array, "*rows K"]:
    """Return the softmax of scores (.., K), wrong by what the rounding of a logarithm may make.

    The logarithm of a row is its largest score and the logarithm of a sum of at least 1. What the
    rounding takes from the second is no more than all of it, `most` times for safety: the weight of
    a single key is exact.
    """
    exact = softmax(raw)
    peak = np.abs(raw.max(axis=-1, keepdims=True))
    beyond_peak = -np.log(exact.max(axis=-1, keepdims=True))
    signs = SIGNS[rng.integers(2, size=peak.shape)]
    moved: Array = exact * (1.0 + signs * np.minimum(unit * peak, most * beyond_peak))
    return moved


def of_rounded_slopes(
    given: Setting, unit: float, rng: np.random.Generator, raw: Annotated[Array, "B H Q K"]
) -> Annotated[Array, "B H Q K"]:
    """Return the softmax of scores (B, H, Q, K), wrong by what rounded slopes may make.

    Those of attention to a memory, which has no such bias, are left as they are.
    """
    queries, keys = raw.shape[-2:]
    if queries == keys or given.choices.query_alignment != "equal-numbers":
        bias = relative_bias(given, queries, keys)
        assert bias is not None
        raw = raw + unit * SIGNS[rng.integers(2, size=(len(bias), 1, 1))] * bias
    exact: Array = softmax(raw)
    return exact


def size_of_logarithms(
    choices: Choices, output: Annotated[Array, "B T V"], target: Annotated[Array, "B T"]
) -> float:
    """Return the size of the logarithms in a loss of `output` (B, T, V) for `target` (B, T).

    The logarithm of a sum of exponentials is subtracted from a logit, and the entropy from a
    cross-entropy: each is rounded by its own size, while the difference may be far smaller.
    """
    words = float(np.log(output.shape[-1]))
    size = words * (choices.loss_measure == "divergence")
    if choices.loss_input == "logits":
        peaks = np.abs(output.astype(np.float64).max(axis=-1))
        size += words + float(peaks[np.isfinite(peaks)].max(initial=0.0))
    return size * (1 if choices.loss_normaliser == "tokens" else target.size)


def with_columns_off(
    parameters: Mapping[str, Floats], unit: float, rng: np.random.Generator
) -> dict[str, Floats]:
    """Return `parameters` that give columns of queries and keys wrong by `unit` of their size."""
    found = dict(parameters)
    for projection in {name.rpartition(".")[0] for name in parameters}:
        if projection.rpartition(".")[2] in ("query", "key"):
            own = [f"{projection}.{part}" for part in ("weight", "bias")]
            signs = SIGNS[rng.integers(2, size=len(parameters[own[0]]))]
            for name in own:
                if name in found:
                    found[name] = ((1.0 + unit * signs) * found[name].T).T
    return found
