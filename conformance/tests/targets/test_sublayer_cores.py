"""Sublayers that hold their own norm and residual sum: what they compute without is judged."""

from pathlib import Path

import pytest
from mistaken_code import adapted, asked_or_broken, broken, edited
from proof import share

from attentest.judging.bench import Bench
from attentest.judging.judge import judge
from attentest.results.verdict import Status
from attentest.targets.adapt import Unclear

AFTER = """
from torch import nn


class PositionwiseFeedForward(nn.Module):
    def __init__(self, d_in, d_hid, dropout=0.1):
        super().__init__()
        self.w_1 = nn.Linear(d_in, d_hid)
        self.w_2 = nn.Linear(d_hid, d_in)
        self.layer_norm = nn.LayerNorm(d_in, eps=1e-6)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        residual = x
        x = self.w_2(self.w_1(x).relu())
        return self.layer_norm(self.dropout(x) + residual)
"""

BEFORE = """
from torch import nn


class Attention(nn.Module):
    def __init__(self, dim, heads=8, dropout=0.0):
        super().__init__()
        self.heads = heads
        self.norm = nn.LayerNorm(dim)
        self.to_qkv = nn.Linear(dim, dim * 3, bias=False)
        self.to_out = nn.Sequential(nn.Linear(dim, dim), nn.Dropout(dropout))

    def forward(self, x):
        x = self.norm(x)
        q, k, v = (
            one.unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for one in self.to_qkv(x).chunk(3, dim=-1)
        )
        weights = (q @ k.transpose(-1, -2) * q.shape[-1] ** -0.5).softmax(dim=-1)
        return self.to_out((weights @ v).transpose(1, 2).flatten(2))
"""

SOUND = {"PositionwiseFeedForward": AFTER, "Attention": BEFORE}

WRONG = [
    ("PositionwiseFeedForward", ".relu()", ""),
    ("PositionwiseFeedForward", "self.dropout(x) + residual", "2 * self.dropout(x) + residual"),
    ("PositionwiseFeedForward", "self.dropout(x) + residual", "self.dropout(x) + 2 * residual"),
    ("PositionwiseFeedForward", "self.w_2(", "x + self.w_2("),
    ("Attention", "q.shape[-1] ** -0.5", "x.shape[-1] ** -0.5"),
    ("Attention", "softmax(dim=-1)", "softmax(dim=-2)"),
    ("Attention", ".transpose(1, 2).flatten(2)", ".flatten(2).unflatten(1, (x.shape[1], -1))"),
    ("Attention", "return self.to_out(", "return x + 2 * self.to_out("),
]


def formula_of(name: str) -> str:
    component = "multi_head_attention" if name == "Attention" else "feed_forward"
    return f"{component}.formula"


@pytest.mark.parametrize(
    ("name", "said"),
    [("PositionwiseFeedForward", "and its residual sum"), ("Attention", "(norm) is a part")],
)
def test_sublayer_with_its_norm_inside_is_judged_without(
    tmp_path: Path, name: str, said: str
) -> None:
    backend = adapted(tmp_path, name, SOUND[name])
    assert any(said in one for one in backend.assumed)
    compile(backend.written(), "own_backend.py", "exec")
    assert broken(backend, formula_of(name)) == []


def test_strict_asks_for_the_place_of_the_norm(tmp_path: Path) -> None:
    with pytest.raises(Unclear):
        adapted(tmp_path, "Attention", BEFORE, strict=True)


@share(12)
@pytest.mark.parametrize(("name", "right", "wrong"), WRONG)
def test_mistake_in_a_sublayer_with_its_norm_inside_does_not_pass(
    tmp_path: Path, name: str, right: str, wrong: str
) -> None:
    assert asked_or_broken(tmp_path, name, SOUND[name], right, wrong, formula_of(name))


PRE_NORM = AFTER.replace("        residual = x\n", "").replace(
    """        x = self.w_2(self.w_1(x).relu())
        return self.layer_norm(self.dropout(x) + residual)
""",
    """        y = self.layer_norm(x)
        return self.dropout(self.w_2(self.w_1(y).relu())) + x
""",
)


def test_residual_sum_of_a_sublayer_has_its_own_input(tmp_path: Path) -> None:
    name = "PositionwiseFeedForward"
    assert broken(adapted(tmp_path, name, PRE_NORM), formula_of(name)) == []
    with pytest.raises(Unclear):
        adapted(tmp_path, name, PRE_NORM.replace("+ x\n", "+ y\n"))


SUM_ALONE = """
from torch import nn


class PointWiseFeedForward(nn.Module):
    def __init__(self, hidden_units, dropout=0.1):
        super().__init__()
        self.conv1 = nn.Conv1d(hidden_units, hidden_units, kernel_size=1)
        self.dropout1 = nn.Dropout(dropout)
        self.relu = nn.ReLU()
        self.conv2 = nn.Conv1d(hidden_units, hidden_units, kernel_size=1)
        self.dropout2 = nn.Dropout(dropout)

    def forward(self, inputs):
        x = self.relu(self.dropout1(self.conv1(inputs.transpose(-1, -2))))
        outputs = self.dropout2(self.conv2(x)).transpose(-1, -2)
        outputs += inputs
        return outputs
"""


def test_sublayer_with_its_residual_sum_alone_is_judged_without(tmp_path: Path) -> None:
    name = "PointWiseFeedForward"
    backend = adapted(tmp_path, name, SUM_ALONE)
    assert any("its residual sum is a part" in one for one in backend.assumed)
    compile(backend.written(), "own_backend.py", "exec")
    assert broken(backend, formula_of(name)) == []


def test_attention_with_its_residual_sum_alone_is_judged_without(tmp_path: Path) -> None:
    code = BEFORE.replace("        x = self.norm(x)\n", "").replace(
        "        self.norm = nn.LayerNorm(dim)\n", ""
    )
    code = code.replace("return self.to_out(", "return x + self.to_out(")
    assert broken(adapted(tmp_path, "Attention", code), formula_of("Attention")) == []


@share(4, rest=1)
@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("outputs += inputs", "outputs += 2 * inputs"),
        ("outputs += inputs", "outputs = 2 * outputs + inputs"),
        ("outputs += inputs", "outputs = outputs * inputs"),
        ("self.relu(self.dropout1(self.conv1(", "(self.dropout1(self.conv1("),
        ("self.conv2(x)", "self.relu(self.conv2(x))"),
    ],
)
def test_mistake_in_a_sublayer_with_its_residual_sum_does_not_pass(
    tmp_path: Path, right: str, wrong: str
) -> None:
    name = "PointWiseFeedForward"
    assert asked_or_broken(tmp_path, name, SUM_ALONE, right, wrong, formula_of(name))


HIGHWAY = """
from torch import nn


class FeedForward(nn.Module):
    def __init__(self, d_model):
        super().__init__()
        self.gate = nn.Linear(d_model, d_model)
        self.proj = nn.Linear(d_model, d_model)

    def forward(self, x):
        return self.gate(x).sigmoid() * self.proj(x).relu()
"""


def test_square_matrices_that_are_no_network_are_a_question(tmp_path: Path) -> None:
    with pytest.raises(Unclear):
        adapted(tmp_path, "FeedForward", HIGHWAY)


HALF = """
from torch import nn


class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff, dropout=0.1):
        super().__init__()
        self.w_1 = nn.Linear(d_model, d_ff)
        self.w_2 = nn.Linear(d_ff, d_model)
        self.drop = nn.Dropout(dropout)

    def forward(self, x):
        return x + 0.5 * self.drop(self.w_2(self.w_1(x).relu()))
"""


def test_half_a_step_of_a_network_is_a_question(tmp_path: Path) -> None:
    with pytest.raises(Unclear, match="adds its input"):
        adapted(tmp_path, "FeedForward", HALF)


def test_strict_reports_a_residual_sum_inside(tmp_path: Path) -> None:
    code = HALF.replace("0.5 * ", "")
    assert broken(adapted(tmp_path, "FeedForward", code), formula_of("FeedForward")) == []
    strict = adapted(tmp_path, "FeedForward", code, strict=True)
    assert broken(strict, formula_of("FeedForward"))


GATED = """
import torch
from torch import nn


class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff):
        super().__init__()
        self.norm = nn.RMSNorm(d_model, eps=1e-6)
        self.gate = nn.Linear(d_model, d_ff, bias=False)
        self.up = nn.Linear(d_model, d_ff, bias=False)
        self.down = nn.Linear(d_ff, d_model, bias=False)

    def forward(self, x):
        y = self.norm(x)
        return x + self.down(nn.functional.silu(self.gate(y)) * self.up(y))
"""


def test_gated_network_with_its_norm_and_sum_is_not_blamed_for_rounding(tmp_path: Path) -> None:
    backend = adapted(tmp_path, "FeedForward", GATED)
    compile(backend.written(), "own_backend.py", "exec")
    assert judge(Bench(backend), "feed_forward.formula").status is Status.PASS
    assert backend.limits.precisions != ("float64",)


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("return x + self.down", "return y + self.down"),
        ("y = self.norm(x)", "y = x"),
        ("self.up(y))", "self.up(x))"),
    ],
    ids=["sum with the normed rows", "sum that rounds", "rows that are not normed"],
)
def test_gated_network_whose_sum_is_another_is_a_question(
    tmp_path: Path, right: str, wrong: str
) -> None:
    with pytest.raises(Unclear):
        adapted(tmp_path, "FeedForward", edited(GATED, (right, wrong)))
