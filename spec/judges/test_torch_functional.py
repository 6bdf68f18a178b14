"""torch.nn.functional agrees with the oracles, in both precisions and at every scale."""

import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import bounded
import numpy as np
import pytest
import rounding
import torch
from bounded import PRECISIONS, SCALES, Drawn
from judging import Answer
from torch.nn import functional

from attentest_spec.attention import softmax
from attentest_spec.choices import CHOICES, PAPER
from attentest_spec.embedding import embedding
from attentest_spec.feed_forward import activate
from attentest_spec.generator import log_softmax
from attentest_spec.layer_norm import layer_norm
from attentest_spec.linear import linear
from attentest_spec.masks import causal_mask
from attentest_spec.multi_head_attention import multi_head_attention
from attentest_spec.rms_norm import rms_norm
from attentest_spec.setting import Array, Floats, Setting
from attentest_spec.sizes import Sizes

Judge = Callable[[Drawn], list[Answer]]


def tensor(drawn: Drawn, array: Array) -> torch.Tensor:
    """Return `array` as the judge takes it."""
    return torch.from_numpy(np.array(drawn.lowered(array)))


def judge_softmax(drawn: Drawn) -> list[Answer]:
    x = drawn.numbers(3, 4, 7)
    oracle = softmax(x)
    tiny = rounding.spacing(np.zeros(()), drawn.u)
    bound = oracle * rounding.of_softmax(x, 0 * x, drawn.u) + tiny
    return [Answer(oracle, functional.softmax(tensor(drawn, x), dim=-1).numpy(), bound)]


def judge_log_softmax(drawn: Drawn) -> list[Answer]:
    x = drawn.numbers(3, 4, 7)
    oracle = log_softmax(x)
    bound = rounding.of_softmax(x, 0 * x, drawn.u) + 3 * drawn.u * np.abs(oracle)
    return [Answer(oracle, functional.log_softmax(tensor(drawn, x), dim=-1).numpy(), bound)]


def judge_layer_norm(drawn: Drawn) -> list[Answer]:
    found = []
    for epsilon in (1e-12, 1e-5, 1e-1):
        x, gain, bias = drawn.numbers(3, 4, 6), drawn.numbers(6), drawn.numbers(6)
        given = Setting(
            choices=PAPER.but(norm_epsilon=epsilon), parameters={"gain": gain, "bias": bias}
        )
        said = functional.layer_norm(
            tensor(drawn, x), (6,), tensor(drawn, gain), tensor(drawn, bias), epsilon
        )
        bound = rounding.of_layer_norm(x, gain, bias, epsilon, drawn.u)
        found.append(Answer(layer_norm(given, x), said.numpy(), bound))
    return found


def judge_rms_norm(drawn: Drawn) -> list[Answer]:
    found = []
    for epsilon in (1e-12, 1e-5, 1e-1):
        x, gain = drawn.numbers(3, 4, 6), drawn.numbers(6)
        given = Setting(choices=PAPER.but(rms_epsilon=epsilon), parameters={"gain": gain})
        said = functional.rms_norm(tensor(drawn, x), (6,), tensor(drawn, gain), epsilon)
        bound = rounding.of_rms_norm(x, gain, epsilon, drawn.u)
        found.append(Answer(rms_norm(given, x), said.numpy(), bound))
    return found


ACTIVATIONS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "relu": functional.relu,
    "gelu": functional.gelu,
    "gelu-tanh": partial(functional.gelu, approximate="tanh"),
    "gelu-sigmoid": lambda x: x * torch.sigmoid(1.702 * x),
    "silu": functional.silu,
    "sigmoid": torch.sigmoid,
    "relu-squared": lambda x: functional.relu(x).square(),
}


def size_of(name: str, x: Array) -> Array:
    """Return the magnitude of what is rounded, for inputs of the magnitude x (N)."""
    if name == "sigmoid":  # about 1/2 near 0, where the others are as small as x
        return np.maximum(x, 1.0)
    return x**2 if name == "relu-squared" else x


def judge_activations(drawn: Drawn) -> list[Answer]:
    x = drawn.numbers(50)
    return [
        Answer(
            activate(name, x),
            say(tensor(drawn, x)).numpy(),
            (rounding.ELEMENTARY + 6) * drawn.u * size_of(name, np.abs(x)) * (name != "relu"),
        )
        for name, say in ACTIVATIONS.items()
    ]


def judge_linear(drawn: Drawn) -> list[Answer]:
    x, weight, bias = drawn.numbers(3, 4, 6), drawn.numbers(5, 6), drawn.numbers(5)
    found = []
    for one in (bias, None):
        kept = {"weight": weight} | ({} if one is None else {"bias": one})
        said = functional.linear(
            tensor(drawn, x), tensor(drawn, weight), None if one is None else tensor(drawn, one)
        )
        bound = bounded.linear_bound(x, 0 * x, weight, one, drawn.u)
        found.append(Answer(linear(Setting(parameters=kept), "", x), said.numpy(), bound))
    return found


def judge_embedding(drawn: Drawn) -> list[Answer]:
    table, ids = drawn.numbers(9, 5), drawn.rng.integers(0, 9, (3, 4))
    given = Setting(choices=PAPER.but(embedding_scale="none"), parameters={"weight": table})
    said = functional.embedding(torch.from_numpy(ids), tensor(drawn, table))
    return [Answer(embedding(given, ids), said.numpy(), np.zeros((3, 4, 5)))]


def masks(drawn: Drawn, queries: int, keys: int) -> list[Array | None]:
    """Return no mask, the causal one, one over keys, and one of its own for every head."""
    over_keys = np.ones((2, 1, 1, keys), dtype=bool)
    over_keys[0, ..., 1] = False
    over_keys[1, ..., : keys - 1] = False
    per_head = drawn.rng.random((2, 3, queries, keys)) < 0.5
    per_head[..., 0] = True
    causal = causal_mask(Setting(), max(queries, keys))[..., :queries, :keys]
    return [None, causal, over_keys, per_head]


def judge_attention(drawn: Drawn) -> list[Answer]:
    query, key, value = (
        drawn.numbers(2, 3, 4, 5),
        drawn.numbers(2, 3, 6, 5),
        drawn.numbers(2, 3, 6, 2),
    )
    found = []
    for mask in masks(drawn, 4, 6):
        oracle, _, bound = bounded.attention_bound(query, key, value, mask, drawn.u)
        said = functional.scaled_dot_product_attention(
            tensor(drawn, query),
            tensor(drawn, key),
            tensor(drawn, value),
            attn_mask=None if mask is None else torch.from_numpy(mask),
        )
        found.append(Answer(oracle, said.numpy(), bound))
    return found


def judge_multi_head_attention(drawn: Drawn) -> list[Answer]:
    d_model, heads = 6, 3
    query, key, value = (drawn.numbers(2, length, d_model) for length in (4, 5, 5))
    shapes = {
        f"{name}.{leaf}": (d_model,) * (2 if leaf == "weight" else 1)
        for name in ("query", "key", "value", "output")
        for leaf in ("weight", "bias")
    }
    own = bounded.parameters(drawn, shapes)
    given = Setting(Sizes(d_model=d_model, heads=heads), PAPER.but(projection_bias="present"), own)
    found = []
    for mask in masks(drawn, 4, 5):
        oracle = multi_head_attention(given, query, key, value, mask)
        said = packed(drawn, own, (query, key, value), mask, heads)
        bound = bounded.heads_bound(drawn, own, (query, key, value), mask, heads)
        found.append(Answer(oracle, said, bound))
    return found


def packed(
    drawn: Drawn,
    own: dict[str, Floats],
    inputs: tuple[Floats, Floats, Floats],
    mask: Array | None,
    heads: int,
) -> Array:
    """Return what the judge says, whose projections are packed and whose length comes first."""
    weights, biases = (
        np.concatenate([own[f"{name}.{leaf}"] for name in ("query", "key", "value")])
        for leaf in ("weight", "bias")
    )
    query, key, value = (tensor(drawn, one).transpose(0, 1) for one in inputs)
    hidden = None
    if mask is not None:
        full = np.broadcast_to(~mask, (2, heads, len(query), len(key)))
        hidden = torch.from_numpy(full.reshape(2 * heads, len(query), len(key)).copy())
    said, _ = functional.multi_head_attention_forward(
        query, key, value, query.size(-1), heads, tensor(drawn, weights), tensor(drawn, biases),
        None, None, False, 0.0, tensor(drawn, own["output.weight"]),
        tensor(drawn, own["output.bias"]), training=False, need_weights=False, attn_mask=hidden,
    )  # fmt: skip
    return said.transpose(0, 1).numpy()


JUDGES: dict[str, Judge] = {
    "softmax": judge_softmax,
    "log_softmax": judge_log_softmax,
    "layer_norm": judge_layer_norm,
    "rms_norm": judge_rms_norm,
    "activations": judge_activations,
    "linear": judge_linear,
    "embedding": judge_embedding,
    "scaled_dot_product_attention": judge_attention,
    "multi_head_attention_forward": judge_multi_head_attention,
}


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("name", JUDGES)
def test_torch_says_what_the_oracle_says(name: str, precision: str, scale: float) -> None:
    drawn = Drawn(precision, scale, np.random.default_rng(1706))
    shares = [one.share for one in JUDGES[name](drawn)]
    assert max(shares) <= 1, shares


def test_every_activation_is_judged() -> None:
    assert set(ACTIVATIONS) == {option.name for option in CHOICES["activation"].options}


ORACLES = {
    "activations": "activate",
    "scaled_dot_product_attention": "attention",
    "multi_head_attention_forward": "multi_head_attention",
}
"""Functions judged under another name."""


@pytest.mark.parametrize("name", JUDGES)
def test_oracle_off_by_a_millionth_is_detected(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    oracle = ORACLES.get(name, name)
    place = bounded if oracle == "attention" else sys.modules[__name__]
    monkeypatch.setattr(place, oracle, off_by_a_millionth(getattr(place, oracle)))
    drawn = Drawn("float64", 1.0, np.random.default_rng(1706))
    assert all(one.share > 1 for one in JUDGES[name](drawn))


def off_by_a_millionth(oracle: Callable[..., Any]) -> Callable[..., Any]:
    def off(*inputs: Any) -> Any:
        found = oracle(*inputs)
        if isinstance(found, tuple):
            return (found[0] * (1 + 1e-6), *found[1:])
        return found * (1 + 1e-6)

    return off
