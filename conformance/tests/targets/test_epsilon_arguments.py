"""The epsilon that an argument gives beside the one that the numbers show."""

from pathlib import Path

import pytest
from folders import SUPPORT

import attentest

NORM = """
import torch
from torch import nn


class LayerNorm(nn.Module):
    def __init__(self, dim, eps=1e-6):
        super().__init__()
        self.gain = nn.Parameter(torch.ones(dim))
        self.bias = nn.Parameter(torch.zeros(dim))
        self.eps = eps

    def forward(self, x):
        rows = x - x.mean(-1, keepdim=True)
        return self.gain * rows / (rows.pow(2).mean(-1, keepdim=True) + self.eps).sqrt() + self.bias


class RMSNorm(nn.Module):
    def __init__(self, dim, eps=1e-12):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(dim))

    def forward(self, x):
        rows = nn.functional.normalize(x, dim=-1, eps=self.eps)
        return rows * x.shape[-1] ** 0.5 * self.weight


class EncoderLayer(nn.Module):
    def __init__(self, dim, heads, hidden, layer_norm_eps=1e-6):
        super().__init__()
        self.attention = nn.MultiheadAttention(dim, heads, batch_first=True)
        self.up, self.down = nn.Linear(dim, hidden), nn.Linear(hidden, dim)
        self.norm1 = nn.LayerNorm(dim, eps=layer_norm_eps)
        self.norm2 = nn.LayerNorm(dim, eps=layer_norm_eps)

    def forward(self, x):
        x = self.norm1(x + self.attention(x, x, x, need_weights=False)[0])
        return self.norm2(x + self.down(self.up(x).relu()))


def layer_norm(x, weight, bias, eps=1e-5):
    var, mean = torch.var_mean(x, dim=-1, keepdim=True, correction=0)
    return (x - mean) / torch.sqrt(var + eps) * weight + bias
"""


def _assumed(folder: Path, name: str, source: str = NORM, **reading: object) -> list[str]:
    """Return what is assumed of an epsilon of `name` in `source`."""
    file = folder / "norms.py"
    file.write_text(source)
    said = attentest.adapted(f"{file}:{name}", **reading).understood
    return [one for one in said if one.startswith("assumed") and "epsilon" in one]


def _changed(right: str, wrong: str) -> str:
    assert NORM.count(right) >= 1
    return NORM.replace(right, wrong)


@pytest.mark.parametrize("name", ["LayerNorm", "RMSNorm", "EncoderLayer", "layer_norm"])
def test_nothing_is_assumed_where_the_argument_is_used(tmp_path: Path, name: str) -> None:
    assert _assumed(tmp_path, name) == []


def test_an_epsilon_that_the_user_gives_is_that_of_the_argument(tmp_path: Path) -> None:
    assert _assumed(tmp_path, "LayerNorm", given={"eps": 1e-3}) == []
    required = _changed("dim, eps=1e-6", "dim, eps")
    assert _assumed(tmp_path, "LayerNorm", required) == []


@pytest.mark.parametrize(
    ("name", "right", "wrong", "said"),
    [
        (
            "LayerNorm",
            "+ self.eps).sqrt()",
            "+ 1e-5).sqrt()",
            "1e-05, eps is 1e-06",
        ),
        (
            "LayerNorm",
            " + self.eps).sqrt()",
            ").sqrt()",
            "0, eps is 1e-06",
        ),
        (
            "RMSNorm",
            ", eps=self.eps)",
            ", eps=1e-8)",
            "1e-08, eps is 1e-12",
        ),
        (
            "EncoderLayer",
            "(dim, eps=layer_norm_eps)",
            "(dim)",
            "1e-05, layer_norm_eps is 1e-06",
        ),
        (
            "layer_norm",
            "var + eps",
            "var + 1e-3",
            "0.001, eps is 1e-05",
        ),
    ],
)
def test_an_argument_that_is_not_used_is_said(
    tmp_path: Path, name: str, right: str, wrong: str, said: str
) -> None:
    (one,) = _assumed(tmp_path, name, _changed(right, wrong))
    found, _, argument = said.partition(", ")
    assert f"_epsilon={found}, as measured, though the argument {argument}: a mistake if" in one


def test_a_norm_without_an_epsilon_is_said(tmp_path: Path) -> None:
    bare = (
        _changed(" + self.eps).sqrt()", ").sqrt()")
        .replace("dim, eps=1e-6", "dim")
        .replace(
            "self.eps = eps\n\n    def forward(self, x):\n        rows = x -",
            "\n    def forward(self, x):\n        rows = x -",
        )
    )
    (one,) = _assumed(tmp_path, "LayerNorm", bare)
    assert "norm_epsilon=0, as measured: a row of one number" in one


@pytest.mark.proof
def test_nothing_is_said_of_rms_norms_in_a_decoder_only_model_of_layer_norms(
    tmp_path: Path,
) -> None:
    text = (SUPPORT / "wild_language_models" / "llama.py").read_text(encoding="utf-8")
    made = text.replace("= RMSNorm(", "= torch.nn.LayerNorm(").replace("1e-6", "1e-5")
    file = tmp_path / "own.py"
    file.write_text(made, encoding="utf-8")
    said = " ".join(attentest.adapted(f"{file}:Transformer").understood)
    assert "norm_kind=layer" in said
    assert "rms_" not in said
