"""Queries and keys in each other's place: the softmax over such scores is not the mistake."""

from pathlib import Path

import pytest

from attentest import adapted
from attentest.judging.bench import Bench
from attentest.judging.judge import judge
from attentest.results.verdict import Status, Verdict

SOURCE = '''
import math
from torch import nn


class MultiHeadAttention(nn.Module):
    """Multi-head attention; mask is True where a key may be seen."""

    def __init__(self, d_model, n_heads):
        super().__init__()
        self.n_heads = n_heads
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.out = nn.Linear(d_model, d_model)

    def split(self, x):
        return x.unflatten(-1, (self.n_heads, -1)).transpose(1, 2)

    def forward(self, x, mask=None):
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        q, k, v = self.split(q), self.split(k), self.split(v)
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
        if mask is not None:
            scores = scores.masked_fill(~mask[:, None], float("-inf"))
        heads = scores.softmax(-1) @ v
        return self.out(heads.transpose(1, 2).flatten(2))
'''
PACKED = ("q, k, v = self.qkv(x)", "k, q, v = self.qkv(x)")
HEADS_LAST = [
    ("import math\n", "import math\n\nimport torch\n"),
    ("scores = q @ k.transpose(-2, -1) /", 'scores = torch.einsum("bhqd,bhkd->qkbh", k, q) /'),
    ("~mask[:, None]", "~mask.permute(1, 2, 0)[..., None]"),
    ("scores.softmax(-1) @ v", 'torch.einsum("qkbh,bhkd->bhqd", scores.softmax(1), v)'),
]
PRODUCT = ("q @ k.transpose", "k @ q.transpose")
THREE = [
    (
        "self.qkv = nn.Linear(d_model, 3 * d_model)",
        "self.q, self.k, self.v = (nn.Linear(d_model, d_model) for _ in range(3))",
    ),
    (
        "q, k, v = self.qkv(x).chunk(3, dim=-1)",
        "q = self.k(x)\n        k = self.q(x)\n        v = self.v(x)",
    ),
]
KEYS_FIRST = [("self.qkv =", "self.kqv ="), (PACKED[0], "k, q, v = self.kqv(x)")]
NEUTRAL = [
    ("q, k, v = self.qkv", "one, two, v = self.qkv"),
    ("q, k, v = self.split(q), self.split(k)", "one, two, v = self.split(one), self.split(two)"),
]
RIGHT = ("q @ k.transpose(-2, -1) / math.sqrt(q", "one @ two.transpose(-2, -1) / math.sqrt(one")
WRONG = (RIGHT[0], "two @ one.transpose(-2, -1) / math.sqrt(one")


LAYER = """

class EncoderLayer(nn.Module):
    def __init__(self, d_model, n_heads, d_ff):
        super().__init__()
        self.attention = MultiHeadAttention(d_model, n_heads)
        self.inner, self.outer = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)
        self.norm1, self.norm2 = nn.LayerNorm(d_model), nn.LayerNorm(d_model)

    def forward(self, x, mask=None):
        x = self.norm1(x + self.attention(x, mask))
        return self.norm2(x + self.outer(self.inner(x).relu()))
"""
IN_PLACE = ("scores = scores.masked_fill(", "scores.masked_fill_(")


def judged(
    folder: Path, *edits: tuple[str, str], name: str = "MultiHeadAttention", more: str = ""
) -> Verdict:
    """Return the verdict on the formula of the code with some edits, and `more` behind it."""
    source = SOURCE + more
    for old, new in edits:
        assert source.count(old) == 1
        source = source.replace(old, new)
    file = folder / "own.py"
    file.write_text(source, encoding="utf-8")
    bench = Bench(adapted(f"{file}:{name}", anyway=True))
    clause = "encoder.layer-formula" if more else "multi_head_attention.formula"
    return judge(bench, clause)


@pytest.mark.parametrize("edits", [(), KEYS_FIRST, [*NEUTRAL, RIGHT]])
def test_right_code_passes(edits: list[tuple[str, str]], tmp_path: Path) -> None:
    assert judged(tmp_path, *edits).status is Status.PASS


@pytest.mark.parametrize(
    ("edits", "line", "confirmed"),
    [
        ([PACKED], "k, q, v = self.qkv(x).chunk", True),
        pytest.param([PRODUCT], "scores = k @ q", True, marks=pytest.mark.proof),
        pytest.param(THREE, "q = self.k(x)", True, marks=pytest.mark.proof),
        pytest.param(HEADS_LAST, "scores = torch.einsum", False, marks=pytest.mark.proof),
        pytest.param([*NEUTRAL, WRONG], "scores = two @ one", False, marks=pytest.mark.proof),
    ],
    ids=["split", "product", "projections", "heads last", "neutral"],
)
def test_line_is_that_of_the_exchange(
    edits: list[tuple[str, str]], line: str, confirmed: bool, tmp_path: Path
) -> None:
    found = judged(tmp_path, *edits).location
    assert found is not None
    assert found.computed == "query and key exchanged"
    assert found.code.startswith(line)
    assert found.confirmed == confirmed


@pytest.mark.parametrize("edits", [[PRODUCT], [PRODUCT, IN_PLACE]], ids=["new", "in place"])
def test_line_of_an_exchange_in_a_layer_is_that_of_the_exchange(
    edits: list[tuple[str, str]], tmp_path: Path
) -> None:
    found = judged(tmp_path, *edits, name="EncoderLayer", more=LAYER).location
    assert found is not None
    assert found.computed == "query and key exchanged"
    assert found.code.startswith("scores = k @ q")


def test_right_layer_passes(tmp_path: Path) -> None:
    assert judged(tmp_path, name="EncoderLayer", more=LAYER).status is Status.PASS


def test_softmax_over_the_queries_is_the_softmax(tmp_path: Path) -> None:
    found = judged(tmp_path, ("softmax(-1)", "softmax(-2)")).location
    assert found is not None
    assert "softmax(-2)" in found.code
    assert found.confirmed
