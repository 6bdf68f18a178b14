"""Residual sums that hold no norm, and those that are built with their sublayer."""

from pathlib import Path

import pytest
from mistaken_code import adapted, broken, edited

from attentest.targets.adapt import Unclear

CALLED = """
from torch import nn


class Residual(nn.Module):
    def __init__(self, dropout=0.1):
        super().__init__()
        self.dropout = nn.Dropout(dropout)

    def forward(self, x, sublayer):
        return x + self.dropout(sublayer(x))
"""
BUILT = """
from torch import nn


class Residual(nn.Module):
    def __init__(self, fn):
        super().__init__()
        self.fn = fn

    def forward(self, x, **kwargs):
        return self.fn(x, **kwargs) + x
"""
NORMED = """
from torch import nn


class ResidualConnection(nn.Module):
    def __init__(self, dim, sublayer, dropout):
        super().__init__()
        self.norm, self.dropout = nn.LayerNorm(dim), nn.Dropout(dropout)
        self.layer = sublayer

    def forward(self, x):
        return x + self.dropout(self.layer(self.norm(x)))
"""
CLAUSES = (
    "residual.formula",
    "residual.per-position",
    "residual.gradient-through-identity",
    "residual.every-parameter-reached",
    "residual.dropout-on-branch-alone",
)


@pytest.mark.parametrize(
    ("name", "code"),
    [("Residual", CALLED), ("Residual", BUILT), ("ResidualConnection", NORMED)],
    ids=["called", "built", "normed"],
)
def test_residual_sum_is_judged_without_a_norm_or_with_its_own(
    tmp_path: Path, name: str, code: str
) -> None:
    backend = adapted(tmp_path, name, code)
    said = " ".join(backend.assumed)  # type: ignore[attr-defined]
    assert ("no norm of its own" in said) == (name == "Residual")
    compile(backend.written(), "own_backend.py", "exec")  # type: ignore[attr-defined]
    assert broken(backend, *CLAUSES) == []
    with pytest.raises(Unclear):
        adapted(tmp_path, name, code, strict=True)


@pytest.mark.parametrize(
    ("code", "right", "wrong"),
    [
        (CALLED, "x + self.dropout(sublayer(x))", "self.dropout(x + sublayer(x))"),
        (CALLED, "x + self.dropout(sublayer(x))", "self.dropout(x) + sublayer(x)"),
        (CALLED, "sublayer(x))", "sublayer(x.detach()))"),
        (CALLED, "x + self.dropout(sublayer(x))", "self.dropout(sublayer(x))"),
        (BUILT, "self.fn(x, **kwargs) + x", "self.fn(x, **kwargs)"),
        (BUILT, "self.fn(x, **kwargs) + x", "2 * self.fn(x, **kwargs) + 2 * x"),
        (BUILT, "self.fn(x, **kwargs) + x", "self.fn(x, **kwargs).detach() + x"),
        (NORMED, "x + self.dropout", "self.norm(x) + self.dropout"),
    ],
)
def test_mistake_in_a_residual_sum_is_a_violation_or_a_question(
    tmp_path: Path, code: str, right: str, wrong: str
) -> None:
    name = "ResidualConnection" if code is NORMED else "Residual"
    try:
        backend = adapted(tmp_path, name, edited(code, (right, wrong)))
    except Unclear:
        return
    assert broken(backend, *CLAUSES)


OF_IMAGES = """
import torch
from torch import nn


class ImageResidual(nn.Module):
    def __init__(self, fn, dropout=0.0):
        super().__init__()
        self.fn, self.rate = fn, dropout

    def forward(self, x):
        out = self.fn(x)
        if self.training and self.rate > 0:
            kept = torch.rand((x.shape[0], 1, 1, 1), device=x.device) > self.rate
            out = out * kept / (1 - self.rate)
        return out + x
"""


def test_residual_sum_of_images_is_not_judged_as_one_of_sequences(tmp_path: Path) -> None:
    with pytest.raises(Unclear):
        adapted(tmp_path, "ImageResidual", OF_IMAGES)
    rows = edited(OF_IMAGES, ("(x.shape[0], 1, 1, 1)", "(x.shape[0], 1, 1)"))
    assert broken(adapted(tmp_path, "ImageResidual", rows), *CLAUSES) == []


PAIR = """
from torch import nn


class SublayerConnection(nn.Module):
    def __init__(self, size, dropout):
        super().__init__()
        self.norm, self.dropout = nn.LayerNorm(size), nn.Dropout(dropout)

    def forward(self, x, sublayer):
        out = sublayer(self.norm(x))
        return x + self.dropout(out[0]), out[1]
"""


def test_sum_of_the_first_of_several_results_is_asked_about(tmp_path: Path) -> None:
    with pytest.raises(Unclear, match="the first of several results of its sublayer"):
        adapted(tmp_path, "SublayerConnection", PAIR)
    either = edited(
        PAIR,
        ("out[0]), out[1]", "out)"),
        ("norm(x))\n", "norm(x))\n        out = out[0] if isinstance(out, tuple) else out\n"),
    )
    assert broken(adapted(tmp_path, "SublayerConnection", either), *CLAUSES) == []
