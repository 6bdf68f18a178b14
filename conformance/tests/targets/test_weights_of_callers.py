"""Networks and attention that are functions of their weights, which their caller holds."""

from pathlib import Path

import pytest
from mistaken_code import adapted, asked_or_broken, broken
from proof import share

from attentest.targets.adapt import Unclear

TORCH = """
import math
import torch


def feed_forward(x, w1, b1, w2, b2):
    return torch.relu(x @ w1 + b1) @ w2 + b2


def swiglu(x, w_gate, w_up, w_down):
    silu, linear = torch.nn.functional.silu, torch.nn.functional.linear
    return linear(silu(linear(x, w_gate)) * linear(x, w_up), w_down)


def multi_head_attention(x, w_q, w_k, w_v, w_o, num_heads, mask=None):
    b, t, d = x.shape
    q, k, v = (
        (x @ w).view(b, t, num_heads, d // num_heads).transpose(1, 2) for w in (w_q, w_k, w_v)
    )
    scores = q @ k.transpose(-2, -1) / math.sqrt(d // num_heads)
    if mask is not None:
        scores = scores.masked_fill(mask == 0, float("-inf"))
    return (scores.softmax(-1) @ v).transpose(1, 2).reshape(b, t, d) @ w_o
"""
NUMPY = """
import numpy as np


def softmax(x):
    powers = np.exp(x - x.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


def linear(x, w, b):
    return x @ w + b


def ffn(x, c_fc, c_proj):
    return linear(np.maximum(linear(x, **c_fc), 0), **c_proj)


def mha(x, params, n_head):
    heads = [np.split(part, n_head, axis=-1) for part in np.split(x @ params["qkv"], 3, axis=-1)]
    mixed = [
        softmax(q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])) @ v for q, k, v in zip(*heads)
    ]
    return np.concatenate(mixed, axis=-1) @ params["out"]
"""
KEYED = """
import torch


def layer_norm(params, x, eps=1e-5):
    variance = x.var(-1, keepdim=True, unbiased=False)
    scaled = (x - x.mean(-1, keepdim=True)) / torch.sqrt(variance + eps)
    return params["scale"] * scaled + params["bias"]


def rms_norm(x, params):
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6) * params["scale"]


def attend(params, x, num_heads):
    q, k, v = (
        (x @ params[n]).unflatten(-1, (num_heads, -1)).transpose(1, 2) for n in ("wq", "wk", "wv")
    )
    weights = (q @ k.mT / q.shape[-1] ** 0.5).softmax(-1)
    return (weights @ v).transpose(1, 2).flatten(2) @ params["wo"]


multi_head_attention = attend
"""
HEADS = "multi_head_attention.heads-are-slices"


@pytest.mark.parametrize(
    ("code", "name", "held", "clauses"),
    [
        (TORCH, "feed_forward", "w1, b1, w2 and b2", ["feed_forward.formula"]),
        (TORCH, "swiglu", "w_gate, w_up and w_down", ["feed_forward.formula"]),
        (
            TORCH,
            "multi_head_attention",
            "w_q, w_k, w_v and w_o",
            ["multi_head_attention.formula", HEADS],
        ),
        (
            NUMPY,
            "ffn",
            "c_fc and c_proj",
            ["feed_forward.formula", "feed_forward.activation-survives-copies"],
        ),
        (NUMPY, "mha", "params", ["multi_head_attention.formula", HEADS]),
        (KEYED, "layer_norm", "params", ["layer_norm.formula", "layer_norm.gain-and-bias"]),
        (KEYED, "rms_norm", "params", ["rms_norm.formula", "rms_norm.weight"]),
        (KEYED, "multi_head_attention", "params", ["multi_head_attention.formula", HEADS]),
    ],
)
def test_functions_of_weights_conform(
    tmp_path: Path, code: str, name: str, held: str, clauses: list[str]
) -> None:
    backend = adapted(tmp_path, name, code)
    assert f"its caller holds {held}: it is judged in a module that does" in backend.understood
    assert broken(backend, *clauses) == []


@share(6, rest=1)
@pytest.mark.parametrize(
    ("code", "name", "right", "wrong"),
    [
        (TORCH, "feed_forward", "torch.relu(x @ w1 + b1)", "torch.relu(x @ w1) + b1"),
        (TORCH, "swiglu", "* linear(x, w_up)", "* linear(x, w_gate)"),
        (TORCH, "multi_head_attention", "math.sqrt(d // num_heads)", "math.sqrt(d)"),
        (TORCH, "multi_head_attention", ".transpose(1, 2).reshape", ".reshape"),
        (TORCH, "multi_head_attention", "(w_q, w_k, w_v)", "(w_q, w_k, w_k)"),
        (NUMPY, "ffn", "np.maximum(linear(x, **c_fc), 0)", "linear(x, **c_fc)"),
        (NUMPY, "mha", "np.sqrt(q.shape[-1])", "np.sqrt(k.shape[-2])"),
    ],
)
def test_mistakes_in_functions_of_weights_are_caught(
    tmp_path: Path, code: str, name: str, right: str, wrong: str
) -> None:
    formula = "feed_forward.formula" if name in ("ffn", "feed_forward", "swiglu") else HEADS
    clauses = [formula, "multi_head_attention.formula"] if formula == HEADS else [formula]
    assert asked_or_broken(tmp_path, name, code, right, wrong, *clauses)


def test_an_argument_that_is_no_weight_is_asked_about(tmp_path: Path) -> None:
    code = TORCH.replace("x, w1, b1, w2, b2):", "x, w1, b1, w2, b2, step):")
    with pytest.raises(Unclear, match=r"nothing in it says what to give for w1 and .* step"):
        adapted(tmp_path, "feed_forward", code.replace("@ w2 + b2", "@ w2[step:] + b2"))
