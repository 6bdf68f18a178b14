"""Two libraries that share no code with the oracles, nor with torch, agree on drawn inputs."""

from collections.abc import Callable, Iterator
from typing import Any

import bounded
import flax.linen
import jax
import numpy as np
import pytest
import rounding
from bounded import Drawn
from hypothesis import given, settings
from hypothesis import strategies as st
from judging import Answer
from scipy import special

from attentest_spec.attention import softmax
from attentest_spec.choices import PAPER
from attentest_spec.feed_forward import activate
from attentest_spec.generator import log_softmax
from attentest_spec.layer_norm import layer_norm
from attentest_spec.multi_head_attention import multi_head_attention
from attentest_spec.setting import Array, Floats, Setting
from attentest_spec.sizes import Sizes

settings.register_profile("judges", derandomize=True, database=None, deadline=None)
settings.load_profile("judges")


@pytest.fixture(autouse=True)
def _double_precision() -> Iterator[None]:
    with jax.enable_x64(True):
        yield


drawn_scales = st.sampled_from([1e-3, 1e-1, 1.0, 10.0, 1e3])
seeds = st.integers(0, 2**32 - 1)
few = st.integers(1, 6)
widths = st.integers(1, 12)

SIZES = ((1, 1, 1, 1, 1), (2, 1, 3, 4, 2), (1, 3, 2, 5, 3), (2, 2, 4, 1, 5), (3, 2, 1, 7, 12))
"""Batch, heads, queries, keys and width; few, since jax compiles for every shape anew."""


def source(seed: int, scale: float) -> Drawn:
    """Return a source of inputs in double precision."""
    return Drawn("float64", scale, np.random.default_rng(seed))


def agreed(*answers: Answer) -> None:
    """Fail where an oracle and a judge are further apart than rounding allows."""
    shares = [one.share for one in answers]
    assert max(shares) <= 1, shares


Function = Callable[..., Any]
SOFTMAXES: dict[str, Function] = {"jax": jax.nn.softmax, "scipy": lambda x: special.softmax(x, -1)}
LOG_SOFTMAXES: dict[str, Function] = {
    "jax": jax.nn.log_softmax,
    "scipy": lambda x: special.log_softmax(x, -1),
}
ACTIVATIONS: dict[str, dict[str, Function]] = {
    "jax": {
        "relu": jax.nn.relu,
        "gelu": lambda x: jax.nn.gelu(x, approximate=False),
        "gelu-tanh": lambda x: jax.nn.gelu(x, approximate=True),
        "gelu-sigmoid": lambda x: x * jax.nn.sigmoid(1.702 * x),
        "silu": jax.nn.silu,
        "relu-squared": lambda x: jax.nn.relu(x) ** 2,
    },
    "scipy": {
        "relu": lambda x: (x + np.abs(x)) / 2,
        "gelu": lambda x: x * special.ndtr(x),
        "gelu-tanh": lambda x: x * special.expit((8 / np.pi) ** 0.5 * (x + 0.044715 * x**3)),
        "gelu-sigmoid": lambda x: x * special.expit(1.702 * x),
        "silu": lambda x: x * special.expit(x),
        "relu-squared": lambda x: x * (x + np.abs(x)) / 2,
    },
}


@pytest.mark.parametrize("judge", SOFTMAXES)
@given(seed=seeds, scale=drawn_scales, rows=st.just(3), keys=st.sampled_from([1, 2, 5, 12]))
def test_softmax(judge: str, seed: int, scale: float, rows: int, keys: int) -> None:
    drawn = source(seed, scale)
    x = drawn.numbers(rows, keys)
    oracle = softmax(x)
    tiny = np.finfo(np.float64).tiny
    bound = oracle * rounding.of_softmax(x, 0 * x, drawn.u) + tiny
    agreed(Answer(oracle, np.asarray(SOFTMAXES[judge](x)), bound))


@pytest.mark.parametrize("judge", LOG_SOFTMAXES)
@given(seed=seeds, scale=drawn_scales, rows=st.just(3), keys=st.sampled_from([1, 2, 5, 12]))
def test_log_softmax(judge: str, seed: int, scale: float, rows: int, keys: int) -> None:
    drawn = source(seed, scale)
    x = drawn.numbers(rows, keys)
    oracle = log_softmax(x)
    bound = rounding.of_softmax(x, 0 * x, drawn.u) + 3 * drawn.u * (np.abs(oracle) + np.abs(x))
    agreed(Answer(oracle, np.asarray(LOG_SOFTMAXES[judge](x)), bound))


@pytest.mark.parametrize("name", ACTIVATIONS["jax"])
@pytest.mark.parametrize("judge", ACTIVATIONS)
@given(seed=seeds, scale=drawn_scales, count=st.sampled_from([1, 8]))
def test_activations(judge: str, name: str, seed: int, scale: float, count: int) -> None:
    drawn = source(seed, scale)
    x = drawn.numbers(count)
    bound = (rounding.ELEMENTARY + 6) * drawn.u * np.abs(x)
    agreed(Answer(activate(name, x), np.asarray(ACTIVATIONS[judge][name](x)), bound))


@given(
    seed=seeds,
    scale=drawn_scales,
    rows=st.just(3),
    width=st.sampled_from([2, 3, 8, 12]),
    epsilon=st.sampled_from([1e-12, 1e-5, 1e-1]),
)
def test_layer_norm(seed: int, scale: float, rows: int, width: int, epsilon: float) -> None:
    drawn = source(seed, scale)
    x, gain, bias = drawn.numbers(rows, width), drawn.numbers(width), drawn.numbers(width)
    setting = Setting(
        choices=PAPER.but(norm_epsilon=epsilon), parameters={"gain": gain, "bias": bias}
    )
    judge = flax.linen.LayerNorm(epsilon=epsilon, use_fast_variance=False)
    said = judge.apply({"params": {"scale": gain, "bias": bias}}, x)
    bound = rounding.of_layer_norm(x, gain, bias, epsilon, drawn.u)
    agreed(Answer(layer_norm(setting, x), np.asarray(said), bound))


def kept(drawn: Drawn, batch: int, heads: int, queries: int, keys: int) -> Array | None:
    """Return a mask of one of several kinds, every query with a key to see, or none."""
    kind = drawn.rng.integers(4)
    if kind == 0:
        return None
    shape = [(batch, 1, 1, keys), (1, 1, queries, keys), (batch, heads, queries, keys)][kind - 1]
    mask = drawn.rng.random(shape) < 0.6
    mask[..., 0] = True
    return mask


@pytest.mark.parametrize(
    ("judge", "softmax_in"),
    [
        (flax.linen.dot_product_attention, "float64"),
        # It takes its softmax in single precision, whatever its inputs are.
        (jax.nn.dot_product_attention, "float32"),
    ],
    ids=["linen", "jax"],
)
@given(seed=seeds, scale=drawn_scales, sizes=st.sampled_from(SIZES))
def test_attention_against_jax(
    judge: Function, softmax_in: str, seed: int, scale: float, sizes: tuple[int, ...]
) -> None:
    drawn = source(seed, scale)
    batch, heads, queries, keys, width = sizes
    query = drawn.numbers(batch, heads, queries, width)
    key, value = (drawn.numbers(batch, heads, keys, width) for _ in range(2))
    mask = kept(drawn, batch, heads, queries, keys)
    u = max(drawn.u, rounding.unit(np.dtype(softmax_in)))
    oracle, _, bound = bounded.attention_bound(query, key, value, mask, u)
    inputs = [one.swapaxes(1, 2) for one in (query, key, value)]
    full = None if mask is None else np.broadcast_to(mask, (batch, heads, queries, keys))
    agreed(Answer(oracle, np.asarray(judge(*inputs, mask=full)).swapaxes(1, 2), bound))


@given(seed=seeds, scale=drawn_scales, batch=few, heads=few, queries=few, keys=few, width=few)
def test_attention_against_scipy(
    seed: int, scale: float, batch: int, heads: int, queries: int, keys: int, width: int
) -> None:
    drawn = source(seed, scale)
    query = drawn.numbers(batch, heads, queries, width)
    key, value = drawn.numbers(batch, heads, keys, width), drawn.numbers(batch, heads, keys, 3)
    mask = kept(drawn, batch, heads, queries, keys)
    oracle, _, bound = bounded.attention_bound(query, key, value, mask, drawn.u)
    raw = np.einsum("bhqe,bhke->bhqk", query, key) / width**0.5
    said = special.softmax(raw if mask is None else np.where(mask, raw, -np.inf), axis=-1)
    agreed(Answer(oracle, np.einsum("bhqk,bhkg->bhqg", said, value), bound))


@given(
    seed=seeds,
    scale=st.sampled_from([1e-2, 1.0]),
    heads=st.integers(1, 3),
    keys=st.sampled_from([1, 4]),
)
@settings(max_examples=30)
@pytest.mark.filterwarnings("ignore:You are passing an array of shape")
def test_multi_head_attention_against_flax(seed: int, scale: float, heads: int, keys: int) -> None:
    drawn = source(seed, scale)
    d_model = 2 * heads
    query, key, value = (drawn.numbers(2, length, d_model) for length in (3, keys, keys))
    shapes = {
        f"{name}.{leaf}": (d_model,) * (2 if leaf == "weight" else 1)
        for name in ("query", "key", "value", "output")
        for leaf in ("weight", "bias")
    }
    own = bounded.parameters(drawn, shapes)
    mask = kept(drawn, 2, heads, 3, keys)
    setting = Setting(
        Sizes(d_model=d_model, heads=heads), PAPER.but(projection_bias="present"), own
    )
    judge = flax.linen.MultiHeadDotProductAttention(num_heads=heads, precision="highest")
    said = judge.apply({"params": flax_parameters(own, heads)}, query, key, value, mask=mask)
    bound = bounded.heads_bound(drawn, own, (query, key, value), mask, heads)
    oracle = multi_head_attention(setting, query, key, value, mask)
    agreed(Answer(oracle, np.asarray(said), bound))


def flax_parameters(own: dict[str, Floats], heads: int) -> dict[str, dict[str, Floats]]:
    """Return `own` as flax holds them: (in, head, width) inside, (head, width, out) at the end."""
    d_model = own["query.weight"].shape[0]
    inner = {
        name: {
            "kernel": own[f"{name}.weight"].T.reshape(d_model, heads, -1),
            "bias": own[f"{name}.bias"].reshape(heads, -1),
        }
        for name in ("query", "key", "value")
    }
    outer = {
        "kernel": own["output.weight"].T.reshape(heads, -1, d_model),
        "bias": own["output.bias"],
    }
    return {**inner, "out": outer}
