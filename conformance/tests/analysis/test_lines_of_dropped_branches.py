"""Lines of sublayers that a layer leaves out, or computes and does not add."""

from pathlib import Path

import pytest
from mistaken_code import adapted, edited
from proof import share

from attentest.judging.bench import Bench
from attentest.judging.judge import judge
from attentest.results.verdict import Location, Status

CODE = """
import torch.nn.functional as F
from torch import nn


class EncoderLayer(nn.Module):
    def __init__(self, d_model, heads, d_ff):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(d_model), nn.LayerNorm(d_model)
        self.attention = nn.MultiheadAttention(d_model, heads, batch_first=True)
        self.fc1, self.fc2 = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)

    def forward(self, x):
        y = self.norm1(x)
        y = self.attention(y, y, y, need_weights=False)[0]
        x = x + y  # attended
        y = self.norm2(x)
        y = self.fc2(F.relu(self.fc1(y)))
        x = x + y  # fed
        return x
"""
STACK = """

class Encoder(nn.Module):
    def __init__(self, d_model, heads, d_ff, layers):
        super().__init__()
        self.layers = nn.ModuleList(Layer(d_model, heads, d_ff) for _ in range(layers))

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x
"""
LACKS = "the residual input without the sublayer's output"


def _line(folder: Path, *edits: tuple[str, str]) -> Location | None:
    backend = adapted(folder, "EncoderLayer", edited(CODE, *edits))
    verdict = judge(Bench(backend, shrink=False), "encoder.layer-formula")
    assert verdict.status is Status.VIOLATION
    return verdict.location


@share(2, rest=1)
@pytest.mark.parametrize(
    ("right", "wrong", "named"),
    [
        ("        x = x + y  # attended\n", "", "y = self.norm2(x)"),
        ("        x = x + y  # fed\n", "", "y = self.fc2(F.relu(self.fc1(y)))"),
    ],
)
def test_a_branch_that_is_not_added_is_named_and_not_confirmed(
    tmp_path: Path, right: str, wrong: str, named: str
) -> None:
    location = _line(tmp_path, (right, wrong))
    assert location is not None
    assert (location.code, location.computed) == (named, LACKS)
    assert not location.confirmed


@pytest.mark.proof
def test_a_sublayer_that_is_not_called_is_named_at_the_last_sum(tmp_path: Path) -> None:
    fed = CODE[CODE.index("        y = self.norm2(x)") : CODE.index("        return x")]
    location = _line(tmp_path, (fed, ""))
    assert location is not None
    assert (location.code, location.computed) == ("x = x + y  # attended", LACKS)
    assert not location.confirmed


@pytest.mark.proof
def test_a_branch_that_a_layer_of_a_model_does_not_add_is_named_in_the_layer(
    tmp_path: Path,
) -> None:
    code = edited(
        CODE, ("        x = x + y  # attended\n", ""), ("class EncoderLayer", "class Layer")
    )
    code += STACK
    backend = adapted(tmp_path, "Encoder", code)
    verdict = judge(Bench(backend, shrink=False), "encoder.formula")
    assert (verdict.status, verdict.location is None) == (Status.VIOLATION, False)
    assert verdict.location is not None
    assert (verdict.location.code, verdict.location.computed) == ("y = self.norm2(x)", LACKS)


def test_a_layer_that_adds_both_branches_conforms(tmp_path: Path) -> None:
    backend = adapted(tmp_path, "EncoderLayer", CODE)
    assert judge(Bench(backend), "encoder.layer-formula").status is Status.PASS


NORM = """
import torch
from torch import nn


class LayerNorm(nn.Module):
    def __init__(self, d_model):
        super().__init__()
        self.gain = nn.Parameter(torch.ones(d_model))
        self.bias = nn.Parameter(torch.zeros(d_model))

    def forward(self, x):
        return nn.functional.layer_norm(x, x.shape[-1:], self.gain, self.bias)
"""


@pytest.mark.parametrize(
    ("right", "wrong"), [("torch.ones", "torch.zeros"), ("torch.zeros", "torch.ones")]
)
def test_the_first_values_of_a_norm_have_no_line_of_its_formula(
    tmp_path: Path, right: str, wrong: str
) -> None:
    backend = adapted(tmp_path, "LayerNorm", edited(NORM, (right, wrong)))
    verdict = judge(Bench(backend), "layer_norm.birth")
    assert (verdict.status, verdict.location) == (Status.VIOLATION, None)


NETWORK = """

class Network(nn.Module):
    def __init__(self, d_model, d_ff):
        super().__init__()
        self.norm = nn.LayerNorm(d_model)
        self.fc1, self.fc2 = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)

    def forward(self, x):
        x = self.norm(x)
        x = self.fc2(F.relu(self.fc1(x)))
        return x
"""


def test_a_residual_input_that_a_caller_leaves_out_is_named_there(tmp_path: Path) -> None:
    fed = CODE[CODE.index("        y = self.norm2(x)") : CODE.index("        return x")]
    parts = "self.fc1, self.fc2 = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)"
    edits = (fed, "        x = self.network(x)\n"), (parts, "self.network = Network(d_model, d_ff)")
    norms = "self.norm1, self.norm2 = nn.LayerNorm(d_model), nn.LayerNorm(d_model)"
    edits += ((norms, "self.norm1 = nn.LayerNorm(d_model)"),)
    backend = adapted(tmp_path, "EncoderLayer", edited(CODE, *edits) + NETWORK)
    location = judge(Bench(backend, shrink=False), "encoder.layer-formula").location
    assert location is not None
    assert location.code == "x = self.network(x)"


POST = """
import torch
from torch import nn


class Norm(nn.Module):
    def __init__(self, d_model):
        super().__init__()
        self.gamma = nn.Parameter(torch.ones(d_model))
        self.beta = nn.Parameter(torch.zeros(d_model))

    def forward(self, x):
        deviation = x.std(-1, keepdim=True) + 1e-5
        return (x - x.mean(-1, keepdim=True)) / deviation * self.gamma + self.beta


class EncoderLayer(nn.Module):
    def __init__(self, d_model, heads, d_ff, dropout=0.0):
        super().__init__()
        self.norm1, self.norm2 = Norm(d_model), Norm(d_model)
        self.attention = nn.MultiheadAttention(d_model, heads, batch_first=True)
        self.fc1, self.fc2 = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        attended, _ = self.attention(x, x, x)
        x = x + self.dropout(attended)
        x = self.norm1(x)
        fed = self.fc2(self.fc1(x).relu())
        x = x + self.dropout(fed)
        return self.norm2(x)
"""


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("x = x + self.dropout(attended)", "x = self.dropout(attended)"),
        ("return self.norm2(x)", "return self.norm1(x)"),
    ],
)
def test_line_is_found_where_the_norm_is_not_that_of_torch(
    tmp_path: Path, right: str, wrong: str
) -> None:
    backend = adapted(tmp_path, "EncoderLayer", edited(POST, (right, wrong)))
    location = judge(Bench(backend, shrink=False), "encoder.layer-formula").location
    assert location is not None
    assert location.code == wrong


HELD = (
    ("y = self.attention(y", "h = x + self.attention(y"),
    ("        x = x + y  # attended\n", ""),
    ("self.norm2(x)", "self.norm2(h)"),
    ("x = x + y  # fed", "x = h + y"),
)
"""Edits by which the sum of the first branch has a name of its own."""


def test_branch_that_is_taken_as_a_residual_input_is_named_where_it_is_made(tmp_path: Path) -> None:
    mistake = "h = self.attention(y, y, y, need_weights=False)[0]"
    code = edited(CODE, *HELD, ("h = x + self", "h = self"))
    backend = adapted(tmp_path, "EncoderLayer", code)
    location = judge(Bench(backend, shrink=False), "encoder.layer-formula").location
    assert location is not None
    assert location.code == mistake


WRAPPED = """
import torch.nn.functional as F
from torch import nn


class Residual(nn.Module):
    def __init__(self, d_model):
        super().__init__()
        self.norm = nn.LayerNorm(d_model)

    def forward(self, x, sublayer):
        return x + sublayer(self.norm(x))


class EncoderLayer(nn.Module):
    def __init__(self, d_model, heads, d_ff):
        super().__init__()
        self.first, self.second = Residual(d_model), Residual(d_model)
        self.attention = nn.MultiheadAttention(d_model, heads, batch_first=True)
        self.fc1, self.fc2 = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)

    def forward(self, x):
        x = self.first(x, lambda y: self.attention(y, y, y, need_weights=False)[0])
        return self.second(x, lambda y: self.fc2(F.relu(self.fc1(y))))
"""


def test_a_sum_with_the_normed_rows_is_named_where_it_is_and_not_in_its_caller(
    tmp_path: Path,
) -> None:
    wrong = "        x = self.norm(x)\n        return x + sublayer(x)\n"
    right = "        return x + sublayer(self.norm(x))\n"
    backend = adapted(tmp_path, "EncoderLayer", edited(WRAPPED, (right, wrong)))
    location = judge(Bench(backend, shrink=False), "encoder.layer-formula").location
    assert location is not None
    assert location.code in ("x = self.norm(x)", "return x + sublayer(x)")
