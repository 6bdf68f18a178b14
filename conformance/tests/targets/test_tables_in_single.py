"""A table of rotary positions that a function of the file remembers, in single precision."""

from pathlib import Path

import pytest
from folders import SUPPORT
from mistaken_code import adapted, asked_or_broken, broken

import attentest
from attentest.targets import resolve
from attentest.targets.adapt import Unclear

SOURCE = (SUPPORT / "wild_language_models" / "llama.py").read_text()
TABLE = "def precompute_freqs_cis("
SLICE = "self.freqs_cis[start_pos : start_pos + seqlen]"
MADE = "precompute_freqs_cis(self.head_dim, seqlen, self.theta)"
FIRST = "        self.freqs_cis = precompute"
KEPT = "        self.head_dim, self.theta = params.dim // params.n_heads, params.rope_theta\n"
FORMULA = "language_model.formula"


def written(folder: Path, *changes: tuple[str, str]) -> str:
    """Write the model with a remembered table and `changes` to `folder`; return it as a target."""
    text = SOURCE.replace("import math\n", "import functools\nimport math\n")
    text = text.replace(".float().reshape", ".reshape").replace("(h)).float()", "(h))")
    remembered = ((TABLE, f"@functools.cache\n{TABLE}"), (SLICE, MADE), (FIRST, KEPT + FIRST))
    for old, new in (*remembered, *changes):
        assert old in text
        text = text.replace(old, new)
    (folder / "model.py").write_text(text)
    return f"{folder / 'model.py'}:Transformer"


@pytest.mark.proof
def test_a_model_with_such_a_table_is_judged_in_single_precision(tmp_path: Path) -> None:
    backend = resolve.load(written(tmp_path))
    assert "float64" not in backend.limits.precisions
    report = attentest.check(backend, clauses=[FORMULA])
    assert report[FORMULA].status == "pass", str(report)


@pytest.mark.proof
def test_a_wrong_table_is_a_question(tmp_path: Path) -> None:
    wrong = "freqs = torch.outer(t, freqs)"
    with pytest.raises(Unclear, match="no option of the specification gives its numbers"):
        resolve.load(written(tmp_path, (wrong, wrong.replace("t, ", "t**1.001, "))))


@pytest.mark.proof
def test_a_small_mistake_at_some_lengths_is_no_rounding(tmp_path: Path) -> None:
    """It makes a difference of 5e-7, where the table that is kept makes one of 5e-8."""
    right = "freqs = torch.outer(t, freqs)"
    late = right.replace("(t, ", "(t * (1 + 6e-8 * (len(t) > 20)), ")
    with pytest.raises(Unclear, match="a mistake which shows at some sizes alone"):
        resolve.load(written(tmp_path, (right, late)))


INSIDE = """
import torch
from torch import nn


class Linear(nn.Module):
    def __init__(self, wide, narrow):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(narrow, wide) / wide**0.5)

    def forward(self, x):
        return nn.functional.linear(x, self.weight)


class RotarySelfAttention(nn.Module):
    def __init__(self, d_model: int, num_heads: int, max_seq_len: int, theta: float):
        super().__init__()
        self.num_heads, width = num_heads, d_model // num_heads
        self.qkv, self.out = Linear(d_model, 3 * d_model), Linear(d_model, d_model)
        rates = theta ** -(torch.arange(0, width, 2).float() / width)
        angles = torch.outer(torch.arange(max_seq_len).float(), rates)
        self.register_buffer("cos", angles.cos())
        self.register_buffer("sin", angles.sin())

    def turned(self, x):
        one, other = x[..., ::2], x[..., 1::2]
        cos, sin = self.cos[: x.size(-2)], self.sin[: x.size(-2)]
        return torch.stack([one * cos - other * sin, one * sin + other * cos], -1).flatten(-2)

    def forward(self, x):
        heads = self.qkv(x).unflatten(-1, (3 * self.num_heads, -1)).transpose(1, 2)
        q, k, v = heads.chunk(3, 1)
        q, k = self.turned(q), self.turned(k)
        later = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(1)
        scores = (q @ k.mT / q.shape[-1] ** 0.5).masked_fill(later, -torch.inf)
        return self.out((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))
"""
OF_ATTENTION = "multi_head_attention.formula"


@pytest.mark.proof
def test_attention_with_tables_in_single_and_square_matrices_of_any_class_is_judged(tmp_path):
    assert not broken(adapted(tmp_path, "RotarySelfAttention", INSIDE), OF_ATTENTION)


@pytest.mark.proof
@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("self.turned(k)", "k"),
        ("x.size(-2)], self.sin", "x.size(-2)], -self.sin"),
        ("q.shape[-1] ** 0.5", "x.shape[-1] ** 0.5"),
        (".triu(1)", ".triu(2)"),
    ],
)
def test_mistake_in_such_attention_is_found(tmp_path, right, wrong):
    assert asked_or_broken(tmp_path, "RotarySelfAttention", INSIDE, right, wrong, OF_ATTENTION)
