"""Parts that read the width of a model from their file, in classes that get it as an argument."""

from pathlib import Path

import pytest
from proof import share

import attentest
from attentest.judging.bench import Bench
from attentest.judging.judge import judge
from attentest.results.verdict import Status
from attentest.targets.adapt import Unclear
from attentest_spec import Backend

LESSON = """\
import torch
from torch import nn

context = 24
width = 48
rate = 0.1


class OneHead(nn.Module):
    def __init__(self, head_size):
        super().__init__()
        self.query, self.key, self.value = (
            nn.Linear(width, head_size, bias=False) for _ in range(3)
        )
        self.register_buffer("seen", torch.ones(context, context).tril())
        self.drop = nn.Dropout(rate)

    def forward(self, x):
        length = x.shape[1]
        q, k = self.query(x), self.key(x)
        scores = q @ k.transpose(1, 2) / k.shape[-1] ** 0.5
        scores = scores.masked_fill(self.seen[:length, :length] == 0, float("-inf"))
        return self.drop(scores.softmax(-1)) @ self.value(x)


class MultiHeadAttention(nn.Module):
    def __init__(self, num_heads, head_size):
        super().__init__()
        self.heads = nn.ModuleList(OneHead(head_size) for _ in range(num_heads))
        self.out = nn.Linear(width, width)
        self.drop = nn.Dropout(rate)

    def forward(self, x):
        return self.drop(self.out(torch.cat([one(x) for one in self.heads], dim=-1)))


class FeedForward(nn.Module):
    def __init__(self, width):
        super().__init__()
        layers = nn.Linear(width, 4 * width), nn.ReLU(), nn.Linear(4 * width, width)
        self.net = nn.Sequential(*layers, nn.Dropout(rate))

    def forward(self, x):
        return self.net(x)


class Block(nn.Module):
    def __init__(self, width, num_heads):
        super().__init__()
        self.attention = MultiHeadAttention(num_heads, width // num_heads)
        self.network = FeedForward(width)
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)

    def forward(self, x):
        x = x + self.attention(self.first(x))
        return x + self.network(self.second(x))
"""
SCALE = "k.shape[-1] ** 0.5", "x.shape[-1] ** 0.5"
FORMULAS = {"Block": "encoder.layer-formula", "MultiHeadAttention": "multi_head_attention.formula"}


def read(folder: Path, name: str, *edits: tuple[str, str]) -> Backend:
    text = LESSON
    for old, new in edits:
        assert old in text
        text = text.replace(old, new)
    (folder / "lesson.py").write_text(text)
    return attentest.adapted(f"{folder / 'lesson.py'}:{name}")


def status(backend: Backend, clause: str) -> Status:
    return judge(Bench.for_status(backend, effort=0.3), clause).status


@share(2)
@pytest.mark.parametrize("name", FORMULAS)
def test_parts_with_constants_are_judged_with_the_sizes_of_arguments(
    tmp_path: Path, name: str
) -> None:
    backend = read(tmp_path, name)
    assert status(backend, FORMULAS[name]) is Status.PASS
    (sentence,) = (one for one in backend.understood if one.startswith("assumed that constants"))
    assert "width=d_model" in sentence


def test_known_mistake_in_parts_with_constants_is_a_violation(tmp_path: Path) -> None:
    backend = read(tmp_path, "MultiHeadAttention", SCALE)
    assert status(backend, FORMULAS["MultiHeadAttention"]) is Status.VIOLATION


def test_block_without_a_residual_connection_is_a_violation(tmp_path: Path) -> None:
    backend = read(tmp_path, "Block", ("x = x + self.attention", "x = self.attention"))
    assert status(backend, FORMULAS["Block"]) is Status.VIOLATION


def test_unknown_mistake_in_parts_with_constants_is_one_question(tmp_path: Path) -> None:
    edit = "k.shape[-1] ** 0.5", "k.shape[-1] ** 0.4"
    with pytest.raises(Unclear, match=r"width=d_model.*No choice gives its numbers"):
        read(tmp_path, "MultiHeadAttention", edit)
