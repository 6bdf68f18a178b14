"""Lines of calls that are too coarse, or too random, to be compared with the steps of a formula."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import attentest
from attentest.analysis.lines.locate import locate
from attentest.harness.subject import Subject
from attentest.judging.bench import Bench
from attentest.judging.judge import judge
from attentest.results.verdict import Status
from attentest_spec import Sizes
from attentest_spec.torch import Recipe, TorchBackend, of_function

SIZES = Sizes(d_model=8, heads=2, dropout=1 - 1e-9)


def mixed(scores: Tensor, value: Tensor, mask: Tensor | None) -> Tensor:
    return (scores if mask is None else scores.masked_fill(~mask, -torch.inf)).softmax(-1) @ value


def attend(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None) -> Tensor:
    scores = query @ key.mT / query.shape[-1] ** 0.5
    return mixed(scores, value, mask)


def unscaled(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None) -> Tensor:
    scores = query @ key.mT
    return mixed(scores, value, mask)


def overflowing(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None) -> Tensor:
    scores = query @ key.mT * 4096 / query.shape[-1] ** 0.5 / 4096
    return mixed(scores, value, mask)


def called(function: Callable[..., Any], precision: str) -> Subject:
    """Return a subject that was asked one call, with scores around 50."""
    subject = Bench(of_function(function, "attention"), precision=precision).subject()
    part = subject.part("attention", SIZES)
    rng = np.random.default_rng(0)
    query, key, value = (5 * rng.normal(size=(1, 2, 3, 4)) for _ in "qkv")
    part(*(one.astype(precision) for one in (query, key, value)), None)
    return subject


def test_line_in_half_precision_is_that_of_double_precision_and_suspected() -> None:
    subject = called(unscaled, "float16")
    location = locate(subject, subject.trace, {})
    assert location is not None
    assert "softmax(-1) @ value" in location.code
    assert location.step == "scaled scores"
    assert not location.confirmed


@pytest.mark.parametrize("function", [attend, overflowing])
def test_code_that_is_right_in_double_precision_has_no_line_in_half(
    function: Callable[..., Any],
) -> None:
    subject = called(function, "float16")
    assert locate(subject, subject.trace, {}) is None


class Residual(nn.Module):
    """A residual connection whose dropout is on the sum, and drops all of it."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        self.norm, self.dropout = nn.LayerNorm(sizes.d_model), nn.Dropout(sizes.dropout)

    def forward(self, x: Tensor, weight: Tensor) -> Tensor:
        return self.norm(self.dropout(x + x @ weight))


@pytest.mark.parametrize("training", [True, False])
def test_numbers_of_training_with_dropout_have_no_line(training: bool) -> None:
    names = {"norm.gain": "norm.weight", "norm.bias": "norm.bias"}
    recipe = Recipe(lambda sizes: Residual(sizes), parameters=names)
    subject = Bench(TorchBackend(name="r", title="r", recipes={"residual": recipe})).subject()
    part = subject.part("residual", SIZES, parameters={n: np.ones(8) for n in names})
    if training:
        part.train()
    rng = np.random.default_rng(0)
    part(rng.normal(size=(1, 3, 8)), rng.normal(size=(8, 8)))
    assert locate(subject, subject.trace, {}) is None


DROPPED = """
import torch
from torch import nn
from torch.nn import functional


class MultiHeadAttention(nn.Module):
    def __init__(self, width, heads, dropout=0.1):
        super().__init__()
        self.heads, self.rate = heads, dropout
        self.query, self.key, self.value, self.out = (nn.Linear(width, width) for _ in range(4))

    def forward(self, query, key, value, mask=None):
        q, k, v = (
            one(x).unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for one, x in ((self.query, query), (self.key, key), (self.value, value))
        )
        scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
        if mask is not None:
            scores = scores.masked_fill(mask == 0, -1e9)
        weights = scores.softmax(-1)
        weights = functional.dropout(weights, self.rate)
        return self.out((weights @ v).transpose(1, 2).flatten(2))
"""


def test_line_of_dropout_in_evaluation_mode_is_that_which_draws(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(DROPPED)
    backend = attentest.adapted(f"{tmp_path / 'own.py'}:MultiHeadAttention")
    verdict = judge(Bench(backend), "multi_head_attention.deterministic")
    assert verdict.status is Status.VIOLATION
    assert verdict.location is not None
    assert "functional.dropout" in verdict.location.code
    assert verdict.location.computed == "dropout is applied in evaluation mode"
    assert verdict.location.confirmed


def test_dropout_of_fused_attention_in_evaluation_mode_is_confirmed(tmp_path: Path) -> None:
    fused = "functional.scaled_dot_product_attention(q, k, v, mask, self.rate)"
    start, end = DROPPED.index("        scores = "), DROPPED.index("        return self.out(")
    text = f"{DROPPED[:start]}        mixed = {fused}\n{DROPPED[end:]}"
    (tmp_path / "own.py").write_text(text.replace("(weights @ v)", "mixed"))
    backend = attentest.adapted(f"{tmp_path / 'own.py'}:MultiHeadAttention")
    location = judge(Bench(backend), "multi_head_attention.deterministic").location
    assert location is not None
    assert "by scaled_dot_product_attention" in location.computed
    assert location.confirmed


def test_random_numbers_besides_dropout_are_not_confirmed(tmp_path: Path) -> None:
    noise = "weights = weights * torch.rand(weights.shape, dtype=weights.dtype)\n"
    drop = "weights = functional.dropout(weights, self.rate)\n"
    text = DROPPED.replace(drop, f"{drop}        {noise}")
    (tmp_path / "own.py").write_text(text)
    backend = attentest.adapted(f"{tmp_path / 'own.py'}:MultiHeadAttention")
    location = judge(Bench(backend), "multi_head_attention.deterministic").location
    assert location is not None
    assert not location.confirmed
