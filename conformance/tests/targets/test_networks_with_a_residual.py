"""Networks that are given the rows that their result is added to, and settings of whole ratios."""

from pathlib import Path

import pytest
from mistaken_code import adapted, broken

from attentest.targets.adapt import Unclear

FORMULA = "feed_forward.formula"

CODE = """
import torch
from torch import nn


class LateConfig:
    def __init__(self, d_model=64, expansion_ratio: int = 4):
        if not isinstance(expansion_ratio, int):
            raise ValueError("no whole number")
        self.d_model, self.expansion_ratio = d_model, expansion_ratio


class LateMLP(nn.Module):
    def __init__(self, config: LateConfig):
        super().__init__()
        self.up_proj = nn.Linear(config.d_model, 4 * config.d_model, bias=False)
        self.down_proj = nn.Linear(4 * config.d_model, config.d_model, bias=False)

    def forward(self, hidden_states, residual):
        return self.down_proj(torch.relu(self.up_proj(hidden_states))) + residual
"""


def test_a_network_that_adds_its_second_argument_is_judged_without(tmp_path: Path) -> None:
    backend = adapted(tmp_path, "LateMLP", CODE)
    assert any("residual is what its result is added to" in one for one in backend.assumed)
    compile(backend.written(), "own_backend.py", "exec")
    assert broken(backend, FORMULA, "feed_forward.gradient") == []


@pytest.mark.parametrize("wrong", ["", " + 2 * residual", " + hidden_states", " * residual"])
def test_a_network_that_does_not_add_it_is_a_question(tmp_path: Path, wrong: str) -> None:
    with pytest.raises(Unclear):
        adapted(tmp_path, "LateMLP", CODE.replace(" + residual", wrong))


def test_a_mistake_in_such_a_network_is_a_violation(tmp_path: Path) -> None:
    code = CODE.replace("LateMLP", "FeedForward").replace(
        "torch.relu(self.up_proj(hidden_states))", "self.up_proj(hidden_states)"
    )
    backend = adapted(tmp_path, "FeedForward", code)
    assert broken(backend, FORMULA)


GATED = """
import torch
from torch import nn
from torch.nn import functional as F


class LateMLP(nn.Module):
    def __init__(self, hidden_size, intermediate_size):
        super().__init__()
        self.gate_proj = nn.Linear(hidden_size, intermediate_size, bias=False)
        self.up_proj = nn.Linear(hidden_size, intermediate_size, bias=False)
        self.down_proj = nn.Linear(intermediate_size, hidden_size, bias=False)

    def forward(self, x):
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


class LateRMSNorm(nn.Module):
    def __init__(self, hidden_size, eps=1e-6):
        super().__init__()
        self.weight, self.eps = nn.Parameter(torch.ones(hidden_size)), eps

    def forward(self, x):
        return self.weight * x * torch.rsqrt(x.square().mean(-1, keepdim=True) + self.eps)
"""


@pytest.mark.parametrize("name", ["LateMLP", "LateRMSNorm"])
def test_sound_code_with_a_hint_of_a_name_is_judged(tmp_path: Path, name: str) -> None:
    clause = FORMULA if name == "LateMLP" else "rms_norm.formula"
    assert broken(adapted(tmp_path, name, GATED), clause) == []


@pytest.mark.parametrize(
    ("name", "right", "wrong", "clause"),
    [
        (
            "LateMLP",
            "F.silu(self.gate_proj(x)) * self.up_proj(x)",
            "self.gate_proj(x) * F.silu(self.up_proj(x))",
            FORMULA,
        ),
        ("LateRMSNorm", "self.weight * x", "x", "rms_norm.formula"),
    ],
)
def test_a_mistake_that_no_design_makes_is_a_violation_of_code_with_a_hint(
    tmp_path: Path, name: str, right: str, wrong: str, clause: str
) -> None:
    assert right in GATED
    assert broken(adapted(tmp_path, name, GATED.replace(right, wrong)), clause)


def test_a_gate_whose_other_name_says_nothing_is_a_question(tmp_path: Path) -> None:
    code = GATED.replace("up_proj", "w2").replace("down_proj", "w3")
    code = code.replace(
        "F.silu(self.gate_proj(x)) * self.w2(x)", "self.gate_proj(x) * F.silu(self.w2(x))"
    )
    with pytest.raises(Unclear):
        adapted(tmp_path, "LateMLP", code)
