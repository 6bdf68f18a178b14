"""The tolerance of attention: any sound order of its arithmetic is inside, no mistake is."""

from collections.abc import Callable

import numpy as np
import pytest
from oracle_backend import OracleBackend

from attentest.harness.subject import Probe, Subject
from attentest.harness.tolerances import error_bound, fits
from attentest_spec import Sizes
from attentest_spec.setting import Array

LOG2E = np.log2(np.e)
BLOCK = 3
SEEDS = 60


def exponentials(scores: Array, value: Array) -> Array:
    powers = np.exp(scores)
    return powers / powers.sum(-1, keepdims=True) @ value


def log_sum(scores: Array) -> Array:
    peak = scores.max(-1, keepdims=True)
    return peak + np.log(np.exp(scores - peak).sum(-1, keepdims=True))


def logarithms(scores: Array, value: Array) -> Array:
    return np.exp(scores - log_sum(scores)) @ value


def base_two(scores: Array, value: Array) -> Array:
    scores = scores * scores.dtype.type(LOG2E)
    peak = scores.max(-1, keepdims=True)
    sums = peak + np.log2(np.exp2(scores - peak).sum(-1, keepdims=True))
    return np.exp2(scores - sums) @ value


def normalised_last(scores: Array, value: Array) -> Array:
    powers = np.exp(scores - scores.max(-1, keepdims=True))
    return powers @ value / powers.sum(-1, keepdims=True)


def running_maximum(scores: Array, value: Array) -> Array:
    """Go through the keys in blocks with a running maximum and a running sum."""
    peak, total, mixed = np.full_like(scores[..., :1], -np.inf), 0.0, 0.0
    for start in range(0, scores.shape[-1], BLOCK):
        block = scores[..., start : start + BLOCK]
        higher = np.maximum(peak, block.max(-1, keepdims=True))
        powers, shrink = np.exp(block - higher), np.exp(peak - higher)
        total = total * shrink + powers.sum(-1, keepdims=True)
        mixed = mixed * shrink + powers @ value[..., start : start + BLOCK, :]
        peak = higher
    return mixed / total


def merged_blocks(scores: Array, value: Array) -> Array:
    """Attend to each block of keys by itself, and merge by the logarithms of their sums."""
    starts = range(0, scores.shape[-1], BLOCK)
    blocks = [scores[..., start : start + BLOCK] for start in starts]
    values = [value[..., start : start + BLOCK, :] for start in starts]
    sums = np.concatenate([log_sum(block) for block in blocks], axis=-1)
    shares = np.exp(sums - log_sum(sums))
    parts = [logarithms(*pair) for pair in zip(blocks, values, strict=True)]
    return sum(shares[..., at : at + 1] * part for at, part in enumerate(parts))


def running_logarithm(scores: Array, value: Array) -> Array:
    """Add one key after another by the logarithm of the sum so far."""
    total = scores[..., :1]
    mixed = np.broadcast_to(value[..., :1, :], (*scores.shape[:-1], value.shape[-1]))
    for at in range(1, scores.shape[-1]):
        score = scores[..., at : at + 1]
        more = np.logaddexp(total, score)
        mixed = mixed * np.exp(total - more) + value[..., at : at + 1, :] * np.exp(score - more)
        total = more
    return mixed


def scaled_after(query: Array, key: Array) -> Array:
    return query @ key.swapaxes(-1, -2) / np.sqrt(query.dtype.type(query.shape[-1]))


def scaled_query(query: Array, key: Array) -> Array:
    return query * query.dtype.type(query.shape[-1] ** -0.5) @ key.swapaxes(-1, -2)


def scaled_both(query: Array, key: Array) -> Array:
    root = query.dtype.type(query.shape[-1] ** 0.25)
    return (query / root) @ (key / root).swapaxes(-1, -2)


def scaled_to_base_two(query: Array, key: Array) -> Array:
    """Fold log2(e) into the scale of the query."""
    factor = query.dtype.type(LOG2E * query.shape[-1] ** -0.5)
    return (query * factor) @ key.swapaxes(-1, -2) / query.dtype.type(LOG2E)


SCORES = (scaled_after, scaled_query, scaled_both, scaled_to_base_two)
MEANS = (
    exponentials,
    logarithms,
    base_two,
    normalised_last,
    running_maximum,
    merged_blocks,
    running_logarithm,
)


def attention(precision: str = "float64") -> Probe:
    return Subject(OracleBackend(), precision=precision).part("attention", Sizes(d_model=4))


def draw(seed: int, precision: str, largest: float) -> tuple[Array, ...]:
    """Draw a query, keys and values whose largest score is about `largest`.

    One row alone: in another one a softmax that is less steep would make the tolerance larger.
    """
    rng = np.random.default_rng(seed)
    keys, width = rng.integers(1, 9), rng.integers(1, 40)
    scale = np.sqrt(largest / 3)
    shapes = ((1, width), (keys, width), (keys, 3))
    query, key, value = (rng.normal(size=(1, 1, *shape)).astype(precision) for shape in shapes)
    return query * np.asarray(scale, precision), key * np.asarray(scale, precision), value


@pytest.mark.parametrize("precision", ["float64", "float32"])
@pytest.mark.parametrize("mean", MEANS)
def test_any_sound_order_of_arithmetic_is_inside(
    mean: Callable[..., Array], precision: str
) -> None:
    probe = attention(precision)
    for seed in range(SEEDS):
        most = (1.0, 60.0) if mean is exponentials else (1.0, 60.0, 3000.0)
        query, key, value = draw(seed, precision, most[seed % len(most)])
        actual = mean(SCORES[seed % len(SCORES)](query, key), value)
        inputs = (query.astype(float), key.astype(float), value.astype(float), None)
        assert actual.dtype == precision
        assert fits(probe, *inputs, actual=actual, choices=probe.subject.choices), seed


def tolerance(query: Array, key: Array, value: Array) -> float:
    probe, inputs = attention(), (query, key, value, None)
    return error_bound(probe, inputs, probe.expected(*inputs).output)


def test_tolerance_is_no_larger_than_the_rounding_of_the_largest_score() -> None:
    for seed in range(6):
        query, key, value = draw(seed, "float64", 3.0)
        assert tolerance(query, key, value) < 3e-14
        assert tolerance(30.0 * query, 30.0 * key, value) < 3e-11


def test_single_key_has_no_rounding_of_a_logarithm() -> None:
    query, key, value = draw(1, "float64", 1e6)
    assert tolerance(query, key[..., :1, :], value[..., :1, :]) < 1e-13


@pytest.mark.parametrize("change", [1e-12, -1e-12])
def test_sum_that_is_not_one_is_outside(change: float) -> None:
    probe, (query, key, value) = attention(), draw(3, "float64", 3.0)
    actual = logarithms(scaled_after(query, key), value) * (1.0 + change)
    inputs = (query, key, value, None)
    assert not fits(probe, *inputs, actual=actual, choices=probe.subject.choices)
