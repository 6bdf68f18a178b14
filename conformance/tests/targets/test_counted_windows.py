"""Attention that is built with its window: what the argument counts is measured and assumed."""

from pathlib import Path

import pytest
from mistaken_code import adapted, asked, broken, edited
from proof import share

from attentest.judging.bench import Bench
from attentest.judging.judge import judge

ATTENTION = """
import torch
from torch import nn


class LocalAttention(nn.Module):
    def __init__(self, dim, heads, window_size):
        super().__init__()
        self.heads, self.window_size = heads, window_size
        self.to_qkv = nn.Linear(dim, 3 * dim, bias=False)
        self.to_out = nn.Linear(dim, dim)

    def forward(self, x):
        q, k, v = (
            one.unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for one in self.to_qkv(x).chunk(3, -1)
        )
        place = torch.arange(x.shape[1], device=x.device)
        behind = place[:, None] - place
        hidden = (behind < 0) | (behind >= self.window_size)
        scores = (q @ k.mT * q.shape[-1] ** -0.5).masked_fill(hidden, float("-inf"))
        return self.to_out((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))
"""
DEFAULT = (("heads, window_size)", "heads, window_size=128)"),)
BESIDE = ("behind >= self", "behind > self")
UNSCALED = (" * q.shape[-1] ** -0.5", "")
LATER = ("behind < 0", "behind < -1")

ROTARY = """
import torch
from torch import nn


def turned(x, base=10000.0):
    half = x.shape[-1] // 2
    powers = torch.arange(half, dtype=x.dtype, device=x.device) / half
    angles = torch.arange(x.shape[-2], dtype=x.dtype, device=x.device)[:, None] * base**-powers
    first, second = x[..., :half], x[..., half:]
    cos, sin = angles.cos(), angles.sin()
    return torch.cat([first * cos - second * sin, second * cos + first * sin], -1)


class SlidingWindowAttention(nn.Module):
    def __init__(self, d_model: int, n_heads: int, n_kv_heads: int, sliding_window: int):
        super().__init__()
        self.n_heads, self.n_kv_heads, self.sliding_window = n_heads, n_kv_heads, sliding_window
        width = d_model // n_heads
        self.wq = nn.Linear(d_model, n_heads * width, bias=False)
        self.wk = nn.Linear(d_model, n_kv_heads * width, bias=False)
        self.wv = nn.Linear(d_model, n_kv_heads * width, bias=False)
        self.wo = nn.Linear(n_heads * width, d_model, bias=False)

    def forward(self, x):
        batch, length, _ = x.shape
        q = self.wq(x).view(batch, length, self.n_heads, -1).transpose(1, 2)
        k = self.wk(x).view(batch, length, self.n_kv_heads, -1).transpose(1, 2)
        v = self.wv(x).view(batch, length, self.n_kv_heads, -1).transpose(1, 2)
        q, k = turned(q), turned(k)
        group = self.n_heads // self.n_kv_heads
        k, v = k.repeat_interleave(group, 1), v.repeat_interleave(group, 1)
        seen = torch.ones(length, length, dtype=torch.bool, device=x.device)
        seen = seen.tril() & seen.triu(1 - self.sliding_window)
        scores = (q @ k.transpose(-2, -1)) / q.shape[-1] ** 0.5
        weights = scores.masked_fill(~seen, float("-inf")).softmax(-1)
        return self.wo((weights @ v).transpose(1, 2).reshape(batch, length, -1))
"""
NAMES = {ATTENTION: "LocalAttention", ROTARY: "SlidingWindowAttention"}
CLAUSES = tuple(f"multi_head_attention.{name}" for name in ("formula", "window", "gradient"))


@share(3, rest=2)
@pytest.mark.parametrize(
    ("source", "edits", "counted"),
    [
        (ATTENTION, (), "with-query"),
        (ATTENTION, (BESIDE,), "beside-query"),
        (ATTENTION, DEFAULT, "with-query"),
        (ROTARY, (), "with-query"),
        (ROTARY, (("triu(1 - self", "triu(-self"),), "beside-query"),
    ],
)
def test_positions_that_a_window_counts_are_measured(
    tmp_path: Path, source: str, edits: tuple[tuple[str, str], ...], counted: str
) -> None:
    read = adapted(tmp_path, NAMES[source], edited(source, *edits))
    assert read.choices["attention_window"] == counted
    assert any(f"attention_window={counted}" in one for one in read.assumed)
    assert broken(read, *CLAUSES) == []


@share(2, rest=1)
@pytest.mark.parametrize(
    ("source", "edit"),
    [
        (ATTENTION, UNSCALED),
        (ATTENTION, LATER),
        (ROTARY, ("repeat_interleave(group, 1)", "repeat(1, group, 1, 1)")),
    ],
)
def test_a_window_excuses_no_other_mistake(
    tmp_path: Path, source: str, edit: tuple[str, str]
) -> None:
    mistaken = edited(source, edit)
    read = adapted(tmp_path, NAMES[source], mistaken, component="multi_head_attention")
    assert broken(read, *CLAUSES)


def test_a_declared_window_is_judged_by_what_is_declared(tmp_path: Path) -> None:
    choices = {"attention_window": "with-query"}
    right = adapted(tmp_path, NAMES[ATTENTION], ATTENTION, choices=choices)
    wrong = adapted(tmp_path, NAMES[ATTENTION], edited(ATTENTION, BESIDE), choices=choices)
    assert broken(right, *CLAUSES) == []
    assert broken(wrong, *CLAUSES)


@pytest.mark.parametrize(
    ("edit", "reading"),
    [
        (("behind >= self.window_size", "behind >= self.window_size // 2"), {}),
        (("behind >= self.window_size", "behind < 0"), {}),
        (BESIDE, {"strict": True}),
    ],
)
def test_a_window_that_counts_something_else_is_one_question(
    tmp_path: Path, edit: tuple[str, str], reading: dict[str, bool]
) -> None:
    (tmp_path / "own.py").write_text(edited(ATTENTION, edit))
    text = asked(f"{tmp_path / 'own.py'}:LocalAttention", **reading)
    assert "with-query for 4 positions" in text


@pytest.mark.proof
def test_wrong_window_has_one_line_in_double_and_in_half_precision(tmp_path: Path) -> None:
    choices = {"attention_window": "with-query"}
    bench = Bench(adapted(tmp_path, NAMES[ATTENTION], edited(ATTENTION, BESIDE), choices=choices))
    names = ("formula", "half-precision")
    exact, coarse = (judge(bench, f"multi_head_attention.{name}").location for name in names)
    assert exact is not None
    assert coarse is not None
    assert (exact.line, exact.confirmed) == (coarse.line, True)
    assert "behind > self.window_size" in exact.code
    assert not coarse.confirmed


SETTINGS = """
from dataclasses import dataclass


@dataclass
class Config:
    dim: int
    heads: int
    window_size: int = 64

"""


@pytest.mark.parametrize("edit", [("behind >= self.window_size", "behind < 0"), UNSCALED])
def test_a_field_for_windows_that_attention_does_not_read_is_left(
    tmp_path: Path, edit: tuple[str, str]
) -> None:
    signature = ("(self, dim, heads, window_size)", "(self, config: Config)")
    fields = (
        "super().__init__()",
        "super().__init__()\n        dim, heads = config.dim, config.heads",
    )
    whole = ("heads, window_size\n", "heads, 4096\n")
    code = SETTINGS + edited(ATTENTION, signature, fields, whole, edit)
    read = adapted(tmp_path, "LocalAttention", code, component="multi_head_attention")
    assert read.choices.get("attention_window", "none") == "none"
    assert bool(broken(read, CLAUSES[0])) is (edit is UNSCALED)


def test_window_of_loose_settings_is_left_where_they_read_it(tmp_path: Path) -> None:
    loose = edited(
        ATTENTION,
        ("dim, heads, window_size)", "config)"),
        (
            "self.heads, self.window_size = heads, window_size",
            "dim, self.heads = config.n_embd, config.n_head\n        "
            'self.window = getattr(config, "sliding_window", None)',
        ),
        (" | (behind >= self.window_size)", ""),
    )
    assert "window" not in adapted(tmp_path, "LocalAttention", loose).choices
