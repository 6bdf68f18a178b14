"""A parameter that the spec has no place for is asked about where the output depends on it."""

import sys

import pytest
from folders import SUPPORT

import attentest
from attentest.targets.adapt import Unclear

WILD = SUPPORT / "wild"
sys.path.insert(0, str(WILD))
FILE = WILD / "extra_parameters.py"


@pytest.mark.parametrize(
    ("name", "component", "parameter"),
    [
        ("ScaledHeads", "multi_head_attention", "head_scale"),
        ("ShiftedFeedForward", "feed_forward", "shift"),
        ("OfDistances", "multi_head_attention", "head_scale"),
    ],
)
def test_a_parameter_that_begins_without_effect_is_asked_about(
    name: str, component: str, parameter: str
) -> None:
    with pytest.raises(Unclear, match=f"no place for its parameters {parameter}"):
        attentest.adapted(f"{FILE}:{name}", component)


@pytest.mark.proof
def test_a_wrong_use_of_such_a_parameter_does_not_conform() -> None:
    with pytest.raises(Unclear, match="no place for head_scale"):
        attentest.adapted(f"{FILE}:ScaledTwice", "multi_head_attention")


@pytest.mark.parametrize(
    ("name", "status", "said"),
    [
        ("UnusedScale", "violation", "head_scale"),
        ("FixedFactor", "pass", ""),
        ("FixedQuery", "violation", "key.weight"),
    ],
)
def test_trained_parameters_alone_are_counted(name: str, status: str, said: str) -> None:
    slug = "multi_head_attention.parameter-count"
    report = attentest.check(f"{FILE}:{name}", "multi_head_attention", clauses=[slug])
    assert report[slug].status == status, str(report)
    assert said in report[slug].message


def test_the_switch_that_leaves_a_parameter_out_is_named() -> None:
    with pytest.raises(Unclear, match=r"--give add_key=False .*: with it the numbers are those of"):
        attentest.adapted(f"{FILE}:KeyOfItsOwn", "multi_head_attention")
    report = attentest.check(
        f"{FILE}:KeyOfItsOwn",
        "multi_head_attention",
        given={"add_key": False},
        clauses=["multi_head_attention.formula"],
    )
    assert report.conforms


KEY_OF_NOTHING = """
import torch
from torch import nn


class Attention(nn.Module):
    def __init__(self, d_model, num_heads):
        super().__init__()
        self.heads = num_heads
        self.q, self.k, self.v, self.o = (nn.Linear(d_model, d_model) for _ in range(4))
        self.bias_k, self.bias_v = (nn.Parameter(torch.zeros(1, 1, d_model)) for _ in range(2))

    def forward(self, x, mask=None):
        one = self.bias_k.expand(len(x), 1, -1), self.bias_v.expand(len(x), 1, -1)
        k, v = torch.cat([self.k(x), one[0]], 1), torch.cat([self.v(x), one[1]], 1)
        q, k, v = (t.unflatten(-1, (self.heads, -1)).transpose(1, 2) for t in (self.q(x), k, v))
        scores = q @ k.mT / q.shape[-1] ** 0.5
        if mask is not None:
            scores = scores.masked_fill(nn.functional.pad(mask, (0, 1), value=True) == 0, -1e9)
        return self.o((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))


class EncoderLayer(nn.Module):
    def __init__(self, d_model, num_heads, d_ff):
        super().__init__()
        self.self_attn = Attention(d_model, num_heads)
        self.linear1, self.linear2 = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)
        self.norm1, self.norm2 = nn.LayerNorm(d_model), nn.LayerNorm(d_model)

    def forward(self, x, mask=None):
        x = self.norm1(x + self.self_attn(x, mask))
        return self.norm2(x + self.linear2(self.linear1(x).relu()))
"""


@pytest.mark.proof
def test_vectors_of_an_attention_are_no_norms(tmp_path):
    file = tmp_path / "own.py"
    file.write_text(KEY_OF_NOTHING)
    with pytest.raises(Unclear, match=r"no place for self_attn\.bias_k, self_attn\.bias_v"):
        attentest.adapted(f"{file}:EncoderLayer")
    with pytest.raises(Unclear) as question:
        attentest.adapted(f"{file}:Attention", "multi_head_attention")
    assert "norms its input" not in str(question.value)
