"""Attention whose heads are interleaved: judged with its parameters in that order, and said."""

from pathlib import Path

import pytest
from mistaken_code import adapted, asked_or_broken, broken
from proof import share
from standalone import run_without_suite

import attentest
from attentest.judging.bench import Bench
from attentest.judging.judge import judge
from attentest.results.causes import causes
from attentest.targets.adapt import Unclear

SEPARATE = """
from torch import nn


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, heads):
        super().__init__()
        self.heads, self.width = heads, d_model // heads
        self.q_proj = nn.Linear(d_model, d_model)
        self.k_proj = nn.Linear(d_model, d_model)
        self.v_proj = nn.Linear(d_model, d_model)
        self.out_proj = nn.Linear(d_model, d_model)

    def split(self, x):
        return x.view(*x.shape[:2], self.width, self.heads).permute(0, 3, 1, 2)

    def forward(self, query, key, value, mask=None):
        q, k = self.split(self.q_proj(query)), self.split(self.k_proj(key))
        v = self.split(self.v_proj(value))
        scores = q @ k.transpose(-2, -1) / self.width**0.5
        if mask is not None:
            scores = scores.masked_fill(mask == 0, float("-inf"))
        heads = scores.softmax(-1) @ v
        return self.out_proj(heads.permute(0, 2, 3, 1).flatten(2))
"""
LAYER = """

class EncoderLayer(nn.Module):
    def __init__(self, d_model, heads, d_ff):
        super().__init__()
        self.attention = MultiHeadAttention(d_model, heads)
        self.norm1, self.norm2 = nn.LayerNorm(d_model), nn.LayerNorm(d_model)
        self.ff = nn.Sequential(
            nn.Linear(d_model, d_ff), nn.ReLU(), nn.Linear(d_ff, d_model)
        )

    def forward(self, x, mask=None):
        x = self.norm1(x + self.attention(x, x, x, mask))
        return self.norm2(x + self.ff(x))
"""
PACKED = """
from einops import rearrange
from torch import nn


class MultiHeadAttention(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads, self.scale = heads, (dim // heads) ** -0.5
        self.to_qkv = nn.Linear(dim, dim * 3, bias=False)
        self.to_out = nn.Linear(dim, dim)

    def forward(self, x, mask=None):
        q, k, v = rearrange(self.to_qkv(x), "b t (k d h) -> k b h t d", k=3, h=self.heads)
        scores = q @ k.transpose(-2, -1) * self.scale
        if mask is not None:
            scores = scores.masked_fill(~mask, float("-inf"))
        return self.to_out(rearrange(scores.softmax(-1) @ v, "b h t d -> b t (d h)"))
"""
SOUND = {
    "separate": ("MultiHeadAttention", SEPARATE),
    "packed": ("MultiHeadAttention", PACKED),
    "packed by channel": ("MultiHeadAttention", PACKED.replace("(k d h)", "(d k h)")),
    "packed innermost": ("MultiHeadAttention", PACKED.replace("(k d h)", "(d h k)")),
    "layer": ("EncoderLayer", SEPARATE + LAYER),
}
CLAUSES = {
    "MultiHeadAttention": [
        f"multi_head_attention.{one}"
        for one in ("formula", "masked-keys-ignored", "heads-are-slices", "query-order")
    ],
    "EncoderLayer": ["encoder.layer-formula"],
}


@share(2)
@pytest.mark.parametrize("name", SOUND)
def test_interleaved_heads_conform_and_are_said(tmp_path: Path, name: str) -> None:
    cls, source = SOUND[name]
    backend = adapted(tmp_path, cls, source)
    assert "interleaved (channel c" in backend.assumed[0]
    assert broken(backend, *CLAUSES[cls]) == []


@pytest.mark.parametrize("name", ["separate", "layer"])
def test_strict_asks_about_interleaved_heads(tmp_path: Path, name: str) -> None:
    cls, source = SOUND[name]
    with pytest.raises(Unclear, match="interleaved heads"):
        adapted(tmp_path, cls, source, strict=True)


def test_slices_are_not_said_to_be_interleaved(tmp_path: Path) -> None:
    source = PACKED.replace("(k d h)", "(k h d)").replace("(d h)", "(h d)")
    backend = adapted(tmp_path, "MultiHeadAttention", source)
    assert not any("interleaved" in one for one in backend.assumed)


def test_written_adapter_holds_the_order_of_the_heads(tmp_path: Path) -> None:
    backend = adapted(tmp_path, "MultiHeadAttention", PACKED)
    file = tmp_path / "written.py"
    file.write_text(backend.written())
    assert 'layout="d (e h) -> d (h e)"' in file.read_text()
    written = attentest.adapted(str(file))
    assert broken(written, *CLAUSES["MultiHeadAttention"]) == []


@pytest.mark.proof
def test_mistake_beside_interleaved_heads_is_reproduced(tmp_path: Path) -> None:
    source = SEPARATE.replace("if mask is not None:", "if False:")
    backend = adapted(tmp_path, "MultiHeadAttention", source)
    assert "interleaved" in backend.assumed[0]
    bench = Bench(backend, effort=0.2, shrink=False, diagnose=False)
    verdict = judge(bench, "multi_head_attention.masked-keys-ignored")
    assert verdict.counterexample is not None
    ((ran, text),) = run_without_suite([verdict.counterexample.code])
    assert ran, text


KEY_IN_SLICES = (
    "self.split(self.k_proj(key))",
    "self.k_proj(key).unflatten(-1, (self.heads, -1)).transpose(1, 2)",
)
MERGED_IN_SLICES = ("permute(0, 2, 3, 1)", "transpose(1, 2)")
WRONG = [
    ("separate", *KEY_IN_SLICES),
    ("separate", *MERGED_IN_SLICES),
    (
        "separate",
        "view(*x.shape[:2], self.width, self.heads).permute(0, 3, 1, 2)",
        "view(*x.shape[:2], self.heads, self.width).transpose(1, 2)",
    ),
    ("separate", "heads.permute(0, 2, 3, 1).flatten(2)", "heads.reshape(query.shape)"),
    ("separate", " / self.width**0.5", ""),
    ("packed", "(d h)", "(h d)"),
    ("packed", "(k d h)", "(k h d)"),
    ("packed by channel", "b t (d h)", "b t (h d)"),
    ("packed", "* self.scale", "* self.scale**2"),
    ("layer", *MERGED_IN_SLICES),
]


@share(4, rest=1)
@pytest.mark.parametrize(("name", "right", "wrong"), WRONG)
def test_mistaken_order_of_heads_does_not_pass(
    tmp_path: Path, name: str, right: str, wrong: str
) -> None:
    cls, source = SOUND[name]
    assert asked_or_broken(tmp_path, cls, source, right, wrong, *CLAUSES[cls])


BESIDE = [
    ("separate", "self.width**0.5", "query.shape[-1] ** 0.5", "sqrt(d_model)"),
    ("separate", "scores.softmax(-1)", "scores.softmax(-2)", "over the queries"),
    ("separate", "if mask is not None", "if False", "mask is lost"),
    ("packed", "(dim // heads) ** -0.5", "dim**-0.5", "root of the model width"),
]


@pytest.mark.proof
@share(4)
@pytest.mark.parametrize(("name", "right", "wrong", "words"), BESIDE)
def test_cause_of_another_mistake_is_named_at_its_line(
    tmp_path: Path, name: str, right: str, wrong: str, words: str
) -> None:
    _, source = SOUND[name]
    assert source.count(right) == 1
    changed = source.replace(right, wrong)
    backend = adapted(tmp_path, "MultiHeadAttention", changed)
    assert "interleaved (channel c" in backend.assumed[0]
    verdict = judge(Bench(backend, effort=0.2, shrink=False), "multi_head_attention.formula")
    (cause,) = causes([verdict])
    assert words in f"{cause.text} {cause.location}"
    assert cause.confirmed


@pytest.mark.proof
def test_slices_with_another_mistake_are_not_said_to_be_interleaved(tmp_path: Path) -> None:
    for packing in ("(k h d)", "(h k d)"):
        source = PACKED.replace("(k d h)", packing).replace("(d h)", "(h d)")
        backend = adapted(tmp_path, "MultiHeadAttention", source.replace("** -0.5", "** -1.0"))
        assert not any("interleaved" in one for one in backend.assumed)
        mistakes = broken(backend, "multi_head_attention.formula")
        assert mistakes
