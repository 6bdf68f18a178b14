"""Layers that are functions of dictionaries of weights, one text at a time."""

from pathlib import Path

import pytest
from mistaken_code import adapted, asked_or_broken, broken

CODE = """
import math

import torch


def norm(x, g, b, eps=1e-5):
    mean, variance = x.mean(-1, keepdim=True), x.var(-1, keepdim=True, unbiased=False)
    return g * (x - mean) / torch.sqrt(variance + eps) + b


def linear(x, w, b):
    return x @ w + b


def ffn(x, up, down):
    return linear(torch.relu(linear(x, **up)), **down)


def mha(x, c_attn, c_proj, n_head):
    q, k, v = torch.chunk(linear(x, **c_attn), 3, dim=-1)
    hidden = torch.ones(len(x), len(x), dtype=torch.bool).triu(1)
    heads = []
    for one in zip(*(part.chunk(n_head, dim=-1) for part in (q, k, v))):
        scores = one[0] @ one[1].T / math.sqrt(one[0].shape[-1])
        heads.append(scores.masked_fill(hidden, -torch.inf).softmax(-1) @ one[2])
    return linear(torch.cat(heads, dim=-1), **c_proj)


def transformer_block(x, mlp, attn, ln_1, ln_2, n_head):
    x = x + mha(norm(x, **ln_1), **attn, n_head=n_head)
    return x + ffn(norm(x, **ln_2), **mlp)
"""


def test_attention_of_one_text_is_a_function_of_dictionaries(tmp_path: Path) -> None:
    backend = adapted(tmp_path, "mha", CODE)
    assert broken(backend, "multi_head_attention.formula") == []
    assert any("(L, D), one sample at a time" in one for one in backend.understood)


def test_a_layer_of_dictionaries_within_dictionaries_is_judged(tmp_path: Path) -> None:
    backend = adapted(tmp_path, "transformer_block", CODE)
    assert dict(backend.choices)["norm_placement"] == "pre"
    assert broken(backend, "encoder.layer-formula") == []


@pytest.mark.proof
@pytest.mark.parametrize(
    ("right", "wrong"), [("norm(x, **ln_2)", "norm(x, **ln_1)"), ("x + ffn(", "x + 2 * ffn(")]
)
def test_a_wrong_layer_of_dictionaries_does_not_conform(
    right: str, wrong: str, tmp_path: Path
) -> None:
    clause = "encoder.layer-formula"
    assert asked_or_broken(tmp_path, "transformer_block", CODE, right, wrong, clause)
