"""Classes whose objects hold and compute with arrays of NumPy or JAX."""

import subprocess
import sys
from pathlib import Path

import pytest
from mistaken_code import adapted, asked_or_broken, broken
from proof import share

from attentest.targets.adapt import Unclear
from attentest.targets.members import adapter_text, members

CODE = """
import numpy as np


class Dense:
    def __init__(self, n_in, n_out):
        limit = np.sqrt(6 / (n_in + n_out))
        self.W = np.random.uniform(-limit, limit, (n_in, n_out))
        self.b = np.zeros(n_out)
        self.dW, self.db = np.zeros_like(self.W), np.zeros_like(self.b)

    def forward(self, x):
        self.x = x
        return x @ self.W + self.b

    def backward(self, grad):
        self.dW = self.x.reshape(-1, len(self.W)).T @ grad.reshape(-1, len(self.b))
        self.db = grad.reshape(-1, len(self.b)).sum(0)
        return grad @ self.W.T


class LayerNorm:
    def __init__(self, dim, eps=1e-5):
        self.gamma, self.beta, self.eps = np.ones(dim), np.zeros(dim), eps

    def forward(self, x):
        self.normed = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + self.eps)
        return self.gamma * self.normed + self.beta


class MultiHeadAttention:
    def __init__(self, d_model, n_heads):
        self.n_heads, self.d_head = n_heads, d_model // n_heads
        self.q, self.k, self.v, self.out = (Dense(d_model, d_model) for _ in range(4))

    def split(self, x):
        return x.reshape(*x.shape[:2], self.n_heads, self.d_head).transpose(0, 2, 1, 3)

    def forward(self, query, key, value, mask=None):
        q, k = self.split(self.q.forward(query)), self.split(self.k.forward(key))
        v = self.split(self.v.forward(value))
        scores = q @ k.swapaxes(-1, -2) / np.sqrt(self.d_head)
        if mask is not None:
            scores = np.where(mask == 0, -1e9, scores)
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        weights = weights / weights.sum(-1, keepdims=True)
        return self.out.forward((weights @ v).transpose(0, 2, 1, 3).reshape(query.shape))


class FeedForward:
    def __init__(self, d_model, d_ff):
        self.fc1, self.fc2 = Dense(d_model, d_ff), Dense(d_ff, d_model)

    def forward(self, x):
        return self.fc2.forward(np.maximum(0, self.fc1.forward(x)))


class EncoderLayer:
    def __init__(self, d_model, n_heads, d_ff, dropout=0.1):
        self.attention = MultiHeadAttention(d_model, n_heads)
        self.network = FeedForward(d_model, d_ff)
        self.norm1, self.norm2, self.p = LayerNorm(d_model), LayerNorm(d_model), dropout

    def dropout(self, x, training):
        return x * (np.random.rand(*x.shape) >= self.p) / (1 - self.p) if training else x

    def forward(self, x, mask=None, training=False):
        x = self.norm1.forward(x + self.dropout(self.attention.forward(x, x, x, mask), training))
        return self.norm2.forward(x + self.dropout(self.network.forward(x), training))


class PositionalEncoding:
    def __init__(self, d_model, max_len=512):
        angles = np.arange(max_len)[:, None] / 10000 ** (np.arange(0, d_model, 2) / d_model)
        self.table = np.zeros((max_len, d_model))
        self.table[:, 0::2] = np.sin(angles)
        self.table[:, 1::2] = np.cos(angles)[:, : d_model // 2]

    def forward(self, x):
        return x + self.table[: x.shape[1]]
"""
LATER = """
import numpy as np


def turned(x, cos, sin):
    first, second = x[..., ::2], x[..., 1::2]
    return np.stack((first * cos - second * sin, first * sin + second * cos), -1).reshape(x.shape)


class RMSNorm:
    def __init__(self, dim, eps=1e-5):
        self.weight, self.eps = np.ones(dim), eps

    def __call__(self, x):
        return x / np.sqrt((x**2).mean(-1, keepdims=True) + self.eps) * self.weight


class SwiGLU:
    def __init__(self, dim, hidden_dim):
        self.w1, self.w3 = (np.random.randn(hidden_dim, dim) * dim**-0.5 for _ in range(2))
        self.w2 = np.random.randn(dim, hidden_dim) * dim**-0.5

    def __call__(self, x):
        gate = x @ self.w1.T
        return (gate / (1 + np.exp(-gate)) * (x @ self.w3.T)) @ self.w2.T


class CausalSelfAttention:
    def __init__(self, dim, n_heads, n_kv_heads, max_seq=1024):
        self.n_heads, self.n_kv_heads, self.head_dim = n_heads, n_kv_heads, dim // n_heads
        sizes = (n_heads, n_kv_heads, n_kv_heads)
        self.wq, self.wk, self.wv = (
            np.random.randn(one * self.head_dim, dim) * dim**-0.5 for one in sizes
        )
        self.wo = np.random.randn(dim, n_heads * self.head_dim) * dim**-0.5
        steps = np.arange(0, self.head_dim, 2) / self.head_dim
        angles = np.outer(np.arange(max_seq), 10000.0**-steps)
        self.cos, self.sin = np.cos(angles), np.sin(angles)

    def __call__(self, x):
        b, t, _ = x.shape
        q, k, v = (
            (x @ w.T).reshape(b, t, -1, self.head_dim).transpose(0, 2, 1, 3)
            for w in (self.wq, self.wk, self.wv)
        )
        q, k = (turned(one, self.cos[:t], self.sin[:t]) for one in (q, k))
        k, v = (np.repeat(one, self.n_heads // self.n_kv_heads, axis=1) for one in (k, v))
        scores = q @ k.swapaxes(-1, -2) / np.sqrt(self.head_dim)
        scores = np.where(np.triu(np.ones((t, t), dtype=bool), 1), -np.inf, scores)
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        weights = weights / weights.sum(-1, keepdims=True)
        return (weights @ v).transpose(0, 2, 1, 3).reshape(b, t, -1) @ self.wo.T


class TransformerBlock:
    def __init__(self, dim, n_heads, n_kv_heads, hidden_dim):
        self.attention = CausalSelfAttention(dim, n_heads, n_kv_heads)
        self.feed_forward = SwiGLU(dim, hidden_dim)
        self.attention_norm, self.ffn_norm = RMSNorm(dim), RMSNorm(dim)

    def __call__(self, x):
        h = x + self.attention(self.attention_norm(x))
        return h + self.feed_forward(self.ffn_norm(h))


class Llama:
    def __init__(self, vocab_size, dim, n_layers, n_heads, n_kv_heads, hidden_dim):
        self.tok_embeddings = np.random.randn(vocab_size, dim)
        self.layers = [
            TransformerBlock(dim, n_heads, n_kv_heads, hidden_dim) for _ in range(n_layers)
        ]
        self.norm = RMSNorm(dim)

    def __call__(self, tokens):
        h = self.tok_embeddings[tokens]
        for layer in self.layers:
            h = layer(h)
        return self.norm(h) @ self.tok_embeddings.T
"""
JAX = """
import jax
import jax.numpy as jnp


class Linear:
    def __init__(self, key, n_in, n_out):
        self.weight = jax.random.normal(key, (n_in, n_out)) / jnp.sqrt(n_in)
        self.bias = jnp.zeros(n_out)

    def __call__(self, x):
        return x @ self.weight + self.bias


class FeedForward:
    def __init__(self, key, d_model, d_ff):
        one, other = jax.random.split(key)
        self.up, self.down = Linear(one, d_model, d_ff), Linear(other, d_ff, d_model)

    def __call__(self, x):
        return self.down(jax.nn.relu(self.up(x)))
"""
NNX = """
import jax
from flax import nnx


class FeedForward(nnx.Module):
    def __init__(self, d_model: int, d_ff: int, *, rngs: nnx.Rngs):
        self.up = nnx.Linear(d_model, d_ff, rngs=rngs)
        self.down = nnx.Linear(d_ff, d_model, rngs=rngs)

    def __call__(self, x):
        return self.down(jax.nn.relu(self.up(x)))
"""
APPLIED = """
import numpy as np


class FeedForward:
    def __init__(self, d_model, d_ff):
        self.d_model, self.d_ff = d_model, d_ff

    def init(self, rng):
        return {
            "up": rng.normal(size=(self.d_model, self.d_ff)),
            "down": rng.normal(size=(self.d_ff, self.d_model)),
        }

    def apply(self, params, x):
        return np.maximum(0, x @ params["up"]) @ params["down"]
"""
SOUND = [
    (CODE, "LayerNorm", "layer_norm.formula"),
    (CODE, "MultiHeadAttention", "multi_head_attention.formula"),
    (CODE, "FeedForward", "feed_forward.formula"),
    (CODE, "EncoderLayer", "encoder.layer-formula"),
    (CODE, "EncoderLayer", "encoder.dropout-on-sublayers"),
    (CODE, "PositionalEncoding", "positional_encoding.formula"),
    (LATER, "RMSNorm", "rms_norm.formula"),
    (LATER, "SwiGLU", "feed_forward.formula"),
    (LATER, "CausalSelfAttention", "multi_head_attention.formula"),
    (LATER, "TransformerBlock", "encoder.layer-formula"),
]


@share(2, rest=1)
@pytest.mark.parametrize(("code", "name", "clause"), SOUND)
def test_objects_of_arrays_are_judged(tmp_path: Path, code: str, name: str, clause: str) -> None:
    assert broken(adapted(tmp_path, name, code), clause) == []


MISTAKES = [
    (CODE, "LayerNorm", "x.var(-1", "x.var(1", "layer_norm.formula"),
    (
        CODE,
        "MultiHeadAttention",
        "np.sqrt(self.d_head)",
        "self.d_head",
        "multi_head_attention.formula",
    ),
    (
        CODE,
        "MultiHeadAttention",
        "weights.sum(-1",
        "weights.sum(-2",
        "multi_head_attention.formula",
    ),
    (CODE, "FeedForward", "np.maximum(0, ", "(", "feed_forward.formula"),
    (
        CODE,
        "EncoderLayer",
        "forward(x + self.dropout(self.network",
        "forward(self.dropout(self.network",
        "encoder.layer-formula",
    ),
    (
        CODE,
        "PositionalEncoding",
        "np.cos(angles)",
        "np.sin(angles)",
        "positional_encoding.formula",
    ),
    (LATER, "RMSNorm", ".mean(-1, keepdims=True)", ".mean(keepdims=True)", "rms_norm.formula"),
    (LATER, "SwiGLU", "* (x @ self.w3.T)", "+ (x @ self.w3.T)", "feed_forward.formula"),
    (
        LATER,
        "CausalSelfAttention",
        "first * cos - second",
        "first * cos + second",
        "multi_head_attention.formula",
    ),
    (LATER, "TransformerBlock", "return h + ", "return x + ", "encoder.layer-formula"),
]


@pytest.mark.proof
@share(2, rest=1)
@pytest.mark.parametrize(("code", "name", "right", "wrong", "clause"), MISTAKES)
def test_mistakes_in_classes_of_arrays_do_not_pass(
    tmp_path: Path, code: str, name: str, right: str, wrong: str, clause: str
) -> None:
    assert asked_or_broken(tmp_path, name, code, right, wrong, clause)


@pytest.mark.proof
def test_classes_of_jax_are_judged_with_their_gradients(tmp_path: Path) -> None:
    pytest.importorskip("jax")
    backend = adapted(tmp_path, "FeedForward", JAX)
    assert broken(backend, "feed_forward.formula", "feed_forward.gradient") == []


@pytest.mark.proof
def test_modules_that_hold_variables_are_judged(tmp_path: Path) -> None:
    pytest.importorskip("flax.nnx")
    assert broken(adapted(tmp_path, "FeedForward", NNX), "feed_forward.formula") == []


def test_classes_whose_parameters_a_method_makes_are_a_question(tmp_path: Path) -> None:
    with pytest.raises(Unclear, match="its objects hold no parameters: `init` makes them"):
        adapted(tmp_path, "FeedForward", APPLIED)


def test_whole_models_of_arrays_are_one_question(tmp_path: Path) -> None:
    with pytest.raises(Unclear, match="a whole model that computes with NumPy"):
        adapted(tmp_path, "Llama", LATER)


def test_components_of_a_file_are_its_classes(tmp_path: Path) -> None:
    (tmp_path / "code.py").write_text(CODE)
    found = {one.name: one.component for one in members(str(tmp_path / "code.py")) or []}
    assert found["EncoderLayer"] == "encoder_layer"
    assert found["Dense"] == ""


@pytest.mark.proof
def test_the_written_adapter_is_the_backend(tmp_path: Path) -> None:
    (tmp_path / "code.py").write_text(CODE)
    target = f"{tmp_path / 'code.py'}:FeedForward"
    (tmp_path / "mine.py").write_text(adapter_text(target, {}))
    words = ("run", "mine.py", "--clause", "feed_forward.formula")
    done = subprocess.run(
        [sys.executable, "-m", "attentest", *words], capture_output=True, text=True, cwd=tmp_path
    )
    assert done.returncode == 0, done.stdout + done.stderr
