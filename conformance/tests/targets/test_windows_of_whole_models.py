"""Decoder-only models with a sliding window: what its argument counts is measured."""

from pathlib import Path

import pytest
from mistaken_code import adapted, asked_or_broken, broken, edited
from proof import share

from attentest.targets.adapt import Unclear

MODEL = """
from dataclasses import dataclass

import torch
from torch import nn


@dataclass
class Settings:
    vocab_size: int
    dim: int
    n_layers: int
    n_heads: int
    hidden_dim: int
    sliding_window: int


class Attention(nn.Module):
    def __init__(self, args, window):
        super().__init__()
        self.heads, self.window = args.n_heads, window
        self.joint = nn.Linear(args.dim, 3 * args.dim, bias=False)
        self.merge = nn.Linear(args.dim, args.dim, bias=False)
        places = torch.arange(640)[:, None]
        width = args.dim // args.n_heads
        angles = places * 10000.0 ** -(torch.arange(0, width, 2) / width)
        self.register_buffer("cos", torch.cat([angles, angles], -1).cos(), persistent=False)
        self.register_buffer("sin", torch.cat([angles, angles], -1).sin(), persistent=False)

    def turned(self, x):
        rows, half = x.shape[-2], x.shape[-1] // 2
        other = torch.cat([-x[..., half:], x[..., :half]], -1)
        return x * self.cos[:rows] + other * self.sin[:rows]

    def forward(self, x):
        q, k, v = (
            one.unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for one in self.joint(x).chunk(3, dim=-1)
        )
        scores = self.turned(q) @ self.turned(k).mT / q.shape[-1] ** 0.5
        place = torch.arange(x.shape[1], device=x.device)
        ahead = place[:, None] - place
        scores = scores.masked_fill((ahead < 0) | (ahead >= self.window), float("-inf"))
        return self.merge((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))


class Layer(nn.Module):
    def __init__(self, args, number):
        super().__init__()
        self.attention = Attention(args, args.sliding_window)
        self.norm1, self.norm2 = nn.RMSNorm(args.dim, 1e-5), nn.RMSNorm(args.dim, 1e-5)
        self.gate = nn.Linear(args.dim, args.hidden_dim, bias=False)
        self.rise = nn.Linear(args.dim, args.hidden_dim, bias=False)
        self.fall = nn.Linear(args.hidden_dim, args.dim, bias=False)

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        y = self.norm2(x)
        return x + self.fall(nn.functional.silu(self.gate(y)) * self.rise(y))


class Mistral(nn.Module):
    def __init__(self, args: Settings):
        super().__init__()
        self.tokens = nn.Embedding(args.vocab_size, args.dim)
        self.layers = nn.ModuleList(Layer(args, number) for number in range(args.n_layers))
        self.norm = nn.RMSNorm(args.dim, 1e-5)
        self.output = nn.Linear(args.dim, args.vocab_size, bias=False)

    def forward(self, ids):
        x = self.tokens(ids)
        for layer in self.layers:
            x = layer(x)
        return self.output(self.norm(x))
"""
ONE_MORE = ("ahead >= self.window", "ahead > self.window")
SMALL = ("sliding_window: int", "sliding_window: int = 8")
SOME = ("args, args.sliding_window", "args, args.sliding_window if number % 2 else 4096")
HALF = ("ahead >= self.window", "2 * ahead >= self.window")
CLAUSES = ("language_model.formula", "language_model.causality")


@pytest.mark.proof
@share(3, rest=1)
@pytest.mark.parametrize(
    ("edits", "counted"),
    [([], "with-query"), ([ONE_MORE], "beside-query"), ([SMALL], "with-query")],
)
def test_a_window_of_every_layer_is_measured_and_judged(
    tmp_path: Path, edits: list[tuple[str, str]], counted: str
) -> None:
    backend = adapted(tmp_path, "Mistral", edited(MODEL, *edits))
    assert backend.choices["attention_window"] == counted
    assert "sliding_window=sizes.window" in backend.adapter.building.expression
    assert broken(backend, *CLAUSES) == []


@pytest.mark.proof
def test_a_window_of_some_layers_is_left_longer_than_all_that_is_judged(tmp_path: Path) -> None:
    backend = adapted(tmp_path, "Mistral", edited(MODEL, SOME))
    assert backend.choices["attention_window"] == "none"
    assert any("assumed sliding_window=4096" in one for one in backend.assumed)
    assert broken(backend, *CLAUSES) == []


def test_a_window_that_counts_something_else_is_a_question(tmp_path: Path) -> None:
    with pytest.raises(Unclear, match="built with sliding_window=4, a token sees itself and the 1"):
        adapted(tmp_path, "Mistral", edited(MODEL, HALF))


@pytest.mark.proof
@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("/ q.shape[-1] ** 0.5", "/ x.shape[-1] ** 0.5"),
        ("(ahead < 0)", "(ahead < -1)"),
        ("x = x + self.attention", "x = self.attention"),
        ("self.turned(k).mT", "k.mT"),
    ],
)
def test_mistakes_in_models_with_a_window_are_detected(
    tmp_path: Path, right: str, wrong: str
) -> None:
    assert asked_or_broken(tmp_path, "Mistral", MODEL, right, wrong, *CLAUSES)


@pytest.mark.proof
def test_another_option_of_a_window_is_a_question(tmp_path: Path) -> None:
    with pytest.raises(Unclear, match="sees sliding_window tokens, its own among them, which is"):
        adapted(tmp_path, "Mistral", MODEL, choices={"attention_window": "beside-query"})


def test_a_name_without_attention_is_a_length_where_nothing_else_is(tmp_path: Path) -> None:
    edits = [("sliding_window", "window_size"), ("args.window_size", "4096")]
    edits += [("torch.arange(640)", "torch.arange(args.window_size)")]
    backend = adapted(tmp_path, "Mistral", edited(MODEL, *edits))
    assert "window_size=sizes.max_length" in backend.adapter.building.expression
