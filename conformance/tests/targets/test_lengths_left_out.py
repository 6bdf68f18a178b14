"""Attention with a length that is None by default, and that is for one sequence alone."""

from pathlib import Path

import pytest

import attentest
from attentest.judging.bench import Bench
from attentest.judging.judge import judge
from attentest.results.verdict import Status
from attentest.targets.adapt import Unclear
from attentest_spec import Backend

ATTENTION = """\
import torch
from torch import nn


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, heads, context_len=None):
        super().__init__()
        self.heads, self.size = heads, d_model // heads
        self.q, self.k, self.v, self.o = (nn.Linear(d_model, d_model) for _ in range(4))
        later = None
        if context_len is not None:
            later = torch.ones(context_len, context_len, dtype=torch.bool).triu(1)
        self.register_buffer("later", later)

    def split(self, x):
        return x.unflatten(-1, (self.heads, self.size)).transpose(1, 2)

    def forward(self, query, key, value, mask=None):
        q, k, v = self.split(self.q(query)), self.split(self.k(key)), self.split(self.v(value))
        scores = q @ k.mT / self.size**0.5
        if self.later is not None:
            length = k.shape[2]
            scores = scores.masked_fill(self.later[:length, :length], float("-inf"))
        if mask is not None:
            scores = scores.masked_fill(mask == 0, float("-inf"))
        return self.o((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))
"""
FORMULA = "multi_head_attention.formula"


def read(folder: Path, text: str = ATTENTION, **options: object) -> Backend:
    (folder / "parts.py").write_text(text)
    target = f"{folder / 'parts.py'}:MultiHeadAttention"
    return attentest.adapted(target, **options)  # type: ignore[arg-type]  # as a user writes them


def status(backend: Backend) -> Status:
    return judge(Bench.for_status(backend, effort=0.3), FORMULA).status


def test_length_for_one_sequence_alone_is_a_question_that_names_it(tmp_path: Path) -> None:
    with pytest.raises(Unclear, match=r"built with context_len=max_length .* --give context_len="):
        read(tmp_path)


def test_attention_without_the_length_is_judged(tmp_path: Path) -> None:
    assert status(read(tmp_path, given={"context_len": None})) is Status.PASS


def test_mistake_beside_the_length_is_a_violation(tmp_path: Path) -> None:
    wrong = ATTENTION.replace("k.mT / self.size**0.5", "k.mT / self.size")
    assert status(read(tmp_path, wrong, given={"context_len": None})) is Status.VIOLATION
