"""Classes of NumPy in the forms of small frameworks: modules, parameters, engines of gradients."""

from pathlib import Path

import pytest
from mistaken_code import adapted, asked_or_broken, broken

MODULES = """
import numpy as np


class Parameter:
    def __init__(self, data):
        self.data, self.grad = data, np.zeros_like(data)


class Module:
    training = True

    def __call__(self, *args, **kwargs):
        return self.forward(*args, **kwargs)

    def forward(self, *args):
        raise NotImplementedError


class Linear(Module):
    def __init__(self, n_in, n_out):
        self.weight = Parameter(np.random.randn(n_out, n_in) / np.sqrt(n_in))
        self.bias = Parameter(np.zeros(n_out))

    def forward(self, x):
        self.x = x
        return x @ self.weight.data.T + self.bias.data

    def backward(self, grad):
        self.bias.grad += grad.reshape(-1, grad.shape[-1]).sum(0)
        return grad @ self.weight.data


class FeedForward(Module):
    def __init__(self, d_model, d_ff):
        self.up, self.down = Linear(d_model, d_ff), Linear(d_ff, d_model)

    def forward(self, x):
        return self.down(np.maximum(self.up(x), 0))


class MultiHeadAttention(Module):
    def __init__(self, d_model, n_heads):
        self.n_heads = n_heads
        self.q, self.k, self.v, self.o = (Linear(d_model, d_model) for _ in range(4))

    def split(self, x):
        return x.reshape(*x.shape[:2], self.n_heads, -1).swapaxes(1, 2)

    def forward(self, query, key, value, mask):
        q, k, v = self.split(self.q(query)), self.split(self.k(key)), self.split(self.v(value))
        scores = np.where(mask, q @ k.swapaxes(2, 3) / np.sqrt(q.shape[-1]), -1e9)
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        weights = weights / weights.sum(-1, keepdims=True)
        return self.o((weights @ v).swapaxes(1, 2).reshape(query.shape))


class LayerNorm(Module):
    __slots__ = ("beta", "eps", "gamma", "mean")

    def __init__(self, dim, eps=1e-5):
        self.gamma, self.beta, self.eps = np.ones(dim), np.zeros(dim), eps
        self.mean = np.zeros(dim)

    def forward(self, x):
        self.mean = x.mean(-1, keepdims=True)
        x = (x - self.mean) / np.sqrt(x.var(-1, keepdims=True) + self.eps)
        return x * self.gamma + self.beta


class PositionalEncoding(Module):
    def __init__(self, d_model, max_len=3000):
        angles = np.arange(max_len)[:, None] / 10000 ** (np.arange(0, d_model, 2) / d_model)
        self.table = np.zeros((max_len, d_model), dtype=np.float32)
        self.table[:, 0::2] = np.sin(angles)
        self.table[:, 1::2] = np.cos(angles)

    def forward(self, x):
        return x + self.table[: x.shape[1]]
"""
ENGINE = """
import numpy as np


class Tensor:
    def __init__(self, data):
        self.data, self.grad = np.asarray(data), np.zeros_like(data)
        self._backward = lambda: None

    def __add__(self, other):
        return Tensor(self.data + other.data)

    def __matmul__(self, other):
        return Tensor(self.data @ other.data)

    def relu(self):
        out = Tensor(np.maximum(self.data, 0))

        def _backward():
            self.grad += (out.data > 0) * out.grad

        out._backward = _backward
        return out


class FeedForward:
    def __init__(self, d_model, d_ff):
        for number, sizes in enumerate(((d_model, d_ff), (d_ff, d_model)), 1):
            setattr(self, f"w_{number}", Tensor(np.random.randn(*sizes) / np.sqrt(sizes[0])))
            setattr(self, f"b_{number}", Tensor(np.zeros(sizes[1])))

    def linear(self, x, number):
        return x @ getattr(self, f"w_{number}") + getattr(self, f"b_{number}")

    def __call__(self, x):
        return self.linear(self.linear(Tensor(x), 1).relu(), 2)
"""
SOUND = [
    (MODULES, "FeedForward", "feed_forward.formula"),
    (MODULES, "MultiHeadAttention", "multi_head_attention.formula"),
    (MODULES, "LayerNorm", "layer_norm.formula"),
    (MODULES, "LayerNorm", "layer_norm.parameters-trained"),
    (MODULES, "PositionalEncoding", "positional_encoding.formula"),
    (ENGINE, "FeedForward", "feed_forward.formula"),
    (ENGINE, "FeedForward", "feed_forward.activation-survives-copies"),
]
MISTAKES = [
    (MODULES, "FeedForward", "self.up(x), 0)", "self.up(x), 1)", "feed_forward.formula"),
    (
        MODULES,
        "MultiHeadAttention",
        "np.sqrt(q.shape[-1])",
        "q.shape[-1]",
        "multi_head_attention.formula",
    ),
    (MODULES, "LayerNorm", "x * self.gamma", "x + self.gamma", "layer_norm.formula"),
    (MODULES, "LayerNorm", "self.mean = x.mean(", "self.mean = x.max(", "layer_norm.formula"),
    (
        MODULES,
        "PositionalEncoding",
        "np.cos(angles)",
        "np.sin(angles)",
        "positional_encoding.formula",
    ),
    (
        ENGINE,
        "FeedForward",
        "np.maximum(self.data, 0)",
        "np.abs(self.data)",
        "feed_forward.formula",
    ),
]


@pytest.mark.parametrize(("code", "name", "clause"), SOUND)
def test_classes_of_own_frameworks_are_judged(
    tmp_path: Path, code: str, name: str, clause: str
) -> None:
    assert broken(adapted(tmp_path, name, code), clause) == []


@pytest.mark.parametrize(("code", "name", "right", "wrong", "clause"), MISTAKES)
def test_mistakes_in_classes_of_own_frameworks_do_not_pass(
    tmp_path: Path, code: str, name: str, right: str, wrong: str, clause: str
) -> None:
    assert asked_or_broken(tmp_path, name, code, right, wrong, clause)
