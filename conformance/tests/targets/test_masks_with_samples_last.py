"""Masks (Q, K, B) of code that has the sequence first."""

from pathlib import Path

import pytest
from mistaken_code import adapted, asked_or_broken, broken
from proof import share

from attentest.targets.adapt.masks import shapes_by_words

CODE = """
from torch import einsum, nn


class MultiHeadAttention(nn.Module):
    def __init__(self, heads, d_model):
        super().__init__()
        self.heads, self.scale = heads, (d_model // heads) ** -0.5
        self.query, self.key, self.value, self.output = (
            nn.Linear(d_model, d_model) for _ in range(4)
        )

    def forward(self, *, query, key, value, mask=None):
        length, samples, width = query.shape
        q, k, v = (
            made(x).view(x.shape[0], samples, self.heads, -1)
            for made, x in zip((self.query, self.key, self.value), (query, key, value))
        )
        scores = einsum("ibhd,jbhd->ijbh", q, k) * self.scale
        if mask is not None:
            scores = scores.masked_fill(mask[..., None] == 0, float("-inf"))
        mixed = einsum("ijbh,jbhd->ibhd", scores.softmax(1), v)
        return self.output(mixed.reshape(length, samples, width))
"""
CLAUSE = "multi_head_attention.formula"


def test_attention_with_samples_last_conforms(tmp_path: Path) -> None:
    backend = adapted(tmp_path, "MultiHeadAttention", CODE)
    assert any("shaped (Q, K, B)" in one for one in backend.understood)
    assert set(backend.limits.masks) == {"none", "padding", "causal", "per-sample"}
    assert broken(backend, CLAUSE) == []


@share(4, rest=1)
@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        (" * self.scale", ""),
        ('float("-inf")', "0.0"),
        ("softmax(1)", "softmax(0)"),
    ],
)
def test_mistakes_beside_such_masks_are_detected_or_asked_about(
    tmp_path: Path, right: str, wrong: str
) -> None:
    assert asked_or_broken(tmp_path, "MultiHeadAttention", CODE, right, wrong, CLAUSE)


@pytest.mark.parametrize(
    ("words", "shape"),
    [
        ("mask: (seq_q, seq_k, batch), 0 hides", "samples last"),
        ("mask of shape (batch, seq_q, seq_k)", "per sample"),
    ],
)
def test_the_place_of_the_samples_is_read_from_the_documentation(words: str, shape: str) -> None:
    assert shapes_by_words("mask", words) == (shape,)
