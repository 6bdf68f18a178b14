"""Attention with one argument for key and value: the sequence of the queries, or another one."""

from pathlib import Path

import pytest
from mistaken_code import broken
from proof import share

import attentest
from attentest.targets.adapt import Unclear

SOURCE = """
from torch import nn
import torch.nn.functional as F


class CrossAttention(nn.Module):
    def __init__(self, d_model, n_heads, bias=False):
        super().__init__()
        self.n_heads = n_heads
        self.wq = nn.Linear(d_model, d_model, bias=bias)
        self.wkv = nn.Linear(d_model, 2 * d_model, bias=bias)
        self.wo = nn.Linear(d_model, d_model, bias=bias)

    def split(self, x):
        return x.unflatten(-1, (self.n_heads, -1)).transpose(1, 2)

    def forward(self, x, context=None, attn_mask=None):
        context = x if context is None else context
        q = self.split(self.wq(x))
        k, v = self.wkv(context).chunk(2, -1)
        k, v = self.split(k), self.split(v)
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=attn_mask)
        return self.wo(y.transpose(1, 2).flatten(-2))
"""

SOUND = [
    ("", ""),
    ("bias=False", "bias=True"),
    ("        q = self", "        assert context.shape == x.shape\n        q = self"),
]
"""Edits that leave it sound."""

WRONG = [
    ("self.wkv(context)", "self.wkv(x)"),
    (
        "v = self.wkv(context).chunk(2, -1)",
        "v = self.wkv(context).chunk(2, -1)[0], self.wkv(x).chunk(2, -1)[1]",
    ),
]
"""Edits by which keys or values are those of the queries."""


def read(folder: Path, old: str, new: str) -> object:
    assert old in SOURCE
    (folder / "cross.py").write_text(SOURCE.replace(old, new) if old else SOURCE)
    return attentest.adapted(str(folder / "cross.py:CrossAttention"))


@share(2)
@pytest.mark.parametrize(("old", "new"), SOUND)
def test_attention_to_another_sequence_is_read(old: str, new: str, tmp_path: Path) -> None:
    report = attentest.check(read(tmp_path, old, new), clauses=["multi_head_attention.formula"])
    assert report.conforms, str(report)


@pytest.mark.parametrize(("old", "new"), WRONG)
def test_another_sequence_that_is_not_attended_to_is_asked_about(
    old: str, new: str, tmp_path: Path
) -> None:
    with pytest.raises(Unclear, match="and not with another one as context"):
        read(tmp_path, old, new)


CONTEXT = SOURCE.replace("d_model, n_heads, bias=False", "d_model, n_heads, d_cross").replace(
    "bias=bias", "bias=False"
)
CONTEXT = CONTEXT.replace("self.wkv = nn.Linear(d_model", "self.wkv = nn.Linear(d_cross")


@pytest.mark.parametrize(
    ("right", "wrong"), [("", ""), ("self.split(k), self.split(v)", "self.split(k), self.split(k)")]
)
def test_width_of_the_context_is_an_argument(tmp_path: Path, right: str, wrong: str) -> None:
    (tmp_path / "cross.py").write_text(CONTEXT.replace(right, wrong) if right else CONTEXT)
    backend = attentest.adapted(str(tmp_path / "cross.py:CrossAttention"))
    assert bool(broken(backend, "multi_head_attention.formula")) == bool(right)
