"""The oracles answer the test vectors that the package onnx ships."""

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import onnx_answers
import pytest
from onnx_answers import OutOfScope, answer
from onnx_vectors import OPERATORS, Case, cases

from attentest_spec.attention import attention
from attentest_spec.layer_norm import layer_norm
from attentest_spec.setting import Floats, Setting

COUNTS = {
    "Attention": (52, 12),
    "Gather": (3, 3),
    "Gelu": (2, 2),
    "Gemm": (12, 0),
    "LayerNormalization": (19, 0),
    "LogSoftmax": (10, 0),
    "MatMul": (1, 6),
    "RMSNormalization": (0, 19),
    "RotaryEmbedding": (0, 8),
    "Relu": (3, 0),
    "Softmax": (10, 0),
    "Swish": (1, 0),
    "Trilu": (3, 15),
}
"""Number of cases of each operator that are judged, and that are out of scope."""


def reason(case: Case) -> str:
    """Return why `case` is out of scope, "" where it is not."""
    try:
        answer(case)
    except OutOfScope as why:
        return str(why)
    return ""


IN_SCOPE = [case for case in cases() if not reason(case)]


@pytest.mark.parametrize("case", IN_SCOPE, ids=lambda case: case.name)
def test_oracle_answers(case: Case) -> None:
    assert [one.share for one in answer(case) if one.share > 1] == []


def test_every_case_is_judged_or_out_of_scope_for_a_reason() -> None:
    judged = Counter(case.operator for case in IN_SCOPE)
    every = Counter(case.operator for case in cases())
    assert {name: (judged[name], every[name] - judged[name]) for name in OPERATORS} == COUNTS


def test_output_of_every_case_is_compared() -> None:
    """Only the moments of a norm and the longer cache are outputs without an answer."""
    left = {
        name
        for case in IN_SCOPE
        for name in list(case.outputs)[1:]
        if len(answer(case)) < 2 or name != "qk_matmul_output"
    }
    assert left == {"InvStdDev", "Mean", "present_key", "present_value"}


def scaled_otherwise(given: Setting, query: Floats, *rest: Any) -> tuple[Floats, Floats]:
    return attention(given, query * (1 + 1e-4), *rest)


def unmasked(given: Setting, query: Floats, key: Floats, value: Floats, mask: Any) -> Any:
    return attention(given, query, key, value)


def with_choice(**choice: Any) -> Callable[..., Any]:
    def mistaken(given: Setting, x: Floats) -> Floats:
        chosen = given.choices.but(**choice)
        return layer_norm(Setting(choices=chosen, parameters=given.parameters), x)

    return mistaken


def without_maximum(raw: Floats) -> Floats:
    with np.errstate(over="ignore", invalid="ignore"):
        powers = np.exp(raw)
        result: Floats = powers / powers.sum(axis=-1, keepdims=True)
    return result


MISTAKES: dict[str, tuple[str, Callable[..., Any]]] = {
    "attention scaled otherwise": ("attention", scaled_otherwise),
    "attention without its mask": ("attention", unmasked),
    "softmax without its maximum": ("softmax", without_maximum),
    "softmax over the axis before": ("softmax", lambda raw: np.exp(raw) / np.exp(raw).sum(-2)),
    "softmax for its logarithm": ("log_softmax", without_maximum),
    "unbiased variance": ("layer_norm", with_choice(norm_variance="unbiased")),
    "another epsilon": ("layer_norm", with_choice(norm_epsilon=1e-4)),
    "epsilon at its other place": (
        "layer_norm",
        with_choice(norm_epsilon_place="added-to-deviation"),
    ),
    "gelu by its approximation": (
        "activate",
        lambda name, x: x / (1 + np.exp(-1.702 * x)) if name == "gelu" else x,
    ),
    "no activation": ("activate", lambda name, x: x),
    "a linear map without bias": ("linear", lambda given, name, x: x @ given["weight"].T),
    "embeddings scaled": (
        "embedding",
        lambda given, ids: given["weight"][ids] * np.sqrt(given["weight"].shape[-1]),
    ),
    "a mask without its diagonal": (
        "causal_mask",
        lambda given, length: np.tril(np.ones((1, 1, length, length), dtype=bool), -1),
    ),
    "heads split without a transpose": (
        "split",
        lambda x, heads: x.reshape(x.shape[0], heads, x.shape[1], -1),
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_wrong_oracle_is_detected(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    oracle, mistaken = MISTAKES[name]
    monkeypatch.setattr(onnx_answers, oracle, mistaken)
    assert any(detected(case) for case in IN_SCOPE)


def detected(case: Case) -> bool:
    """Say whether `case` shows that an oracle is wrong."""
    try:
        return any(one.share > 1 for one in answer(case))
    except ValueError:
        return True
