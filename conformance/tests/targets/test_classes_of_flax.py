"""Classes of Flax, whose parameters `init` makes for the inputs of the first call."""

from pathlib import Path

import pytest
from mistaken_code import adapted, asked_or_broken, broken

import attentest

pytest.importorskip("flax.linen")

CODE = """
import flax.linen as nn
import jax.numpy as jnp


class RMSNorm(nn.Module):
    eps: float = 1e-6

    @nn.compact
    def __call__(self, x):
        scale = self.param("scale", nn.initializers.ones, (x.shape[-1],))
        return scale * x / jnp.sqrt((x * x).mean(-1, keepdims=True) + self.eps)


class FeedForward(nn.Module):
    d_ff: int
    dropout_rate: float = 0.1

    @nn.compact
    def __call__(self, x, train: bool):
        hidden = nn.gelu(nn.Dense(self.d_ff)(x), approximate=False)
        hidden = nn.Dropout(self.dropout_rate, deterministic=not train)(hidden)
        return nn.Dense(x.shape[-1])(hidden)


class MultiHeadAttention(nn.Module):
    d_model: int
    num_heads: int

    def setup(self):
        self.qkv, self.out = nn.Dense(3 * self.d_model), nn.Dense(self.d_model)

    def __call__(self, x, mask=None):
        b, t, d = x.shape
        q, k, v = (
            one.reshape(b, t, self.num_heads, -1).transpose(0, 2, 1, 3)
            for one in jnp.split(self.qkv(x), 3, axis=-1)
        )
        scores = q @ k.transpose(0, 1, 3, 2) / jnp.sqrt(d // self.num_heads)
        if mask is not None:
            scores = jnp.where(mask, scores, -1e9)
        mixed = nn.softmax(scores) @ v
        return self.out(mixed.transpose(0, 2, 1, 3).reshape(b, t, d))
"""
WHOLE = (
    CODE
    + """

class EncoderBlock(nn.Module):
    d_model: int
    num_heads: int
    d_ff: int

    def setup(self):
        self.attention = MultiHeadAttention(self.d_model, self.num_heads)
        self.network = FeedForward(self.d_ff)
        self.norm1, self.norm2 = nn.LayerNorm(), nn.LayerNorm()

    def __call__(self, x, mask=None, deterministic=True):
        x = self.norm1(x + self.attention(x, mask))
        return self.norm2(x + self.network(x, not deterministic))
"""
)


def test_class_whose_width_is_that_of_its_input_is_judged(tmp_path: Path) -> None:
    backend = adapted(tmp_path, "RMSNorm", CODE)
    slugs = ("rms_norm.formula", "rms_norm.gradient", "rms_norm.initial-weight")
    assert broken(backend, *slugs) == []
    assert asked_or_broken(tmp_path, "RMSNorm", CODE, "x).mean(-1", "x).mean(1", slugs[0])


@pytest.mark.proof
@pytest.mark.parametrize(
    ("name", "slug"),
    [
        ("FeedForward", "feed_forward.formula"),
        ("MultiHeadAttention", "multi_head_attention.formula"),
        ("EncoderBlock", "encoder.layer-formula"),
    ],
)
def test_classes_of_flax_are_judged(tmp_path: Path, name: str, slug: str) -> None:
    assert broken(adapted(tmp_path, name, WHOLE), slug) == []


@pytest.mark.proof
@pytest.mark.parametrize(
    ("name", "right", "wrong", "slug"),
    [
        (
            "FeedForward",
            "(self.d_ff)(x)",
            "(self.d_ff)(x - x.mean(1, keepdims=True))",
            "feed_forward.formula",
        ),
        ("FeedForward", "not train", "train", "feed_forward.dropout-only-in-training"),
        ("MultiHeadAttention", "d // self.num_heads", "d", "multi_head_attention.formula"),
        ("EncoderBlock", "x = self.norm1(x + ", "x = self.norm1(", "encoder.layer-formula"),
    ],
)
def test_mistakes_in_classes_of_flax_do_not_pass(
    tmp_path: Path, name: str, right: str, wrong: str, slug: str
) -> None:
    assert asked_or_broken(tmp_path, name, WHOLE, right, wrong, slug)


@pytest.mark.proof
def test_the_written_adapter_of_such_a_class_is_the_backend(tmp_path: Path) -> None:
    backend = adapted(tmp_path, "RMSNorm", CODE)
    written = tmp_path / "adapter.py"
    written.write_text(backend.written())
    assert attentest.check(f"{written}:backend", clauses=["rms_norm.formula"]).conforms
