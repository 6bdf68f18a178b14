"""Norms that are called "norm": the numbers say of which kind they are."""

from pathlib import Path

import pytest
from mistaken_code import adapted, asked_or_broken, broken

from attentest.targets.adapt import Unclear

CODE = """
import torch
from torch import nn
from torch.nn import functional as F


def norm(x):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)


class Norm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.gain = nn.Parameter(torch.ones(width))

    def forward(self, x):
        return self.gain * x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)
"""
ROOT = "x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)"


@pytest.mark.parametrize("name", ["norm", "Norm"])
def test_rms_norm_is_judged_as_one(tmp_path: Path, name: str) -> None:
    backend = adapted(tmp_path, name, CODE)
    assert "rms_norm" in backend.recipes
    assert broken(backend, "rms_norm.formula", "rms_norm.epsilon") == []


@pytest.mark.parametrize(
    ("name", "asked"), [("T5Norm", False), ("ModelNorm", False), ("ModelLayerNorm", True)]
)
def test_rms_norm_of_a_longer_name(tmp_path: Path, name: str, asked: bool) -> None:
    code = CODE.replace("class Norm", f"class {name}")
    if not asked:
        assert broken(adapted(tmp_path, name, code), "rms_norm.formula") == []
        return
    with pytest.raises(Unclear, match="it is an RMS norm"):
        adapted(tmp_path, name, code)


def test_rms_norm_that_is_documented_as_a_layer_norm_is_asked_about(tmp_path: Path) -> None:
    words = 'class ModelNorm(nn.Module):\n    """A layer norm of the rows."""\n'
    code = CODE.replace("class Norm(nn.Module):\n", words)
    with pytest.raises(Unclear, match="it is an RMS norm"):
        adapted(tmp_path, "ModelNorm", code)


def test_layer_norm_stays_one(tmp_path: Path) -> None:
    code = CODE.replace(ROOT, "F.layer_norm(x, x.shape[-1:])", 1)
    backend = adapted(tmp_path, "norm", code)
    assert broken(backend, "layer_norm.formula") == []


def test_epsilon_of_each_precision_is_judged_in_one(tmp_path: Path) -> None:
    code = CODE.replace(ROOT, "F.rms_norm(x, (x.size(-1),))", 1)
    backend = adapted(tmp_path, "norm", code)
    assert any("judged in float32 alone" in one for one in backend.assumed)
    assert backend.limits.precisions == ("float32",)
    assert broken(backend, "rms_norm.formula", "rms_norm.epsilon") == []


@pytest.mark.parametrize(
    ("right", "wrong", "clause"),
    [(".mean(", ".sum(", "rms_norm.formula"), ("pow(2)", "abs()", "layer_norm.formula")],
)
def test_mistakes_are_not_excused(tmp_path: Path, right: str, wrong: str, clause: str) -> None:
    mistaken = ROOT.replace(right, wrong)
    assert asked_or_broken(tmp_path, "norm", CODE, ROOT, mistaken, clause)


LAYER_NORM = """
import torch
from torch import nn
from torch.nn import functional as F


class LayerNorm(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.dim, self.weight = dim, nn.Parameter(torch.zeros(dim))

    def forward(self, x):
        return F.layer_norm(x, (self.dim,), eps=1e-3) * (1 + self.weight)
"""


def test_layer_norm_with_one_plus_its_weight_is_a_question(tmp_path: Path) -> None:
    with pytest.raises(Unclear, match=r"multiplies by 1 \+ weight"):
        adapted(tmp_path, "LayerNorm", LAYER_NORM)


def test_layer_norm_that_holds_no_weight_is_a_question(tmp_path: Path) -> None:
    code = LAYER_NORM.replace("= dim, nn.Parameter(torch.zeros(dim))", "= dim, 0.0")
    with pytest.raises(Unclear, match="holds no weight, and has the numbers of one whose weight"):
        adapted(tmp_path, "LayerNorm", code)
    wrong = code.replace("F.layer_norm(x, (self.dim,), eps=1e-3)", "x - x.mean(-1, keepdim=True)")
    with pytest.raises(Unclear, match="the module holds no parameters"):
        adapted(tmp_path, "LayerNorm", wrong)
