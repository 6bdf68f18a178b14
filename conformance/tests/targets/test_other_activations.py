"""Networks with an activation of torch that is no option of the spec, and mistakes in one."""

import pytest
from mistaken_code import adapted, asked_or_broken, broken

from attentest.targets.adapt import Unclear

CODE = """
import torch
from torch import nn
from torch.nn import functional as F


class FeedForward(nn.Module):
    def __init__(self, dim, mult=4):
        super().__init__()
        self.first, self.last = nn.Linear(dim, dim * mult), nn.Linear(dim * mult, dim)
        self.act = nn.ReLU()

    def forward(self, x):
        return self.last(self.act(self.first(x)))
"""
FORMULA = "feed_forward.formula"


@pytest.mark.parametrize(
    ("activation", "said"),
    [("nn.LeakyReLU(0.2)", "leaky_relu"), ("nn.ELU()", "elu"), ("lambda x: F.mish(x)", "mish")],
)
def test_activation_that_is_no_option_is_one_question(tmp_path, activation, said):
    code = CODE.replace("nn.ReLU()", activation)
    with pytest.raises(Unclear, match=f"its activation is {said}, and no option of the spec"):
        adapted(tmp_path, "FeedForward", code)


@pytest.mark.parametrize(
    "wrong", ["lambda x: torch.where(x > 0, x, 0.01 * x)", "nn.Identity()", "nn.Softmax(-1)"]
)
def test_mistake_in_an_activation_is_a_violation(tmp_path, wrong):
    code = CODE.replace("nn.ReLU()", wrong)
    assert broken(adapted(tmp_path, "FeedForward", code), FORMULA)


def test_network_with_another_activation_and_a_mistake_does_not_pass(tmp_path):
    code = CODE.replace("nn.ReLU()", "nn.ELU()")
    edit = "self.last(self", "x + self.last(self"
    assert asked_or_broken(tmp_path, "FeedForward", code, *edit, FORMULA)


LAYER = """
from torch import nn


class EncoderLayer(nn.Module):
    def __init__(self, d_model, nhead, d_ff):
        super().__init__()
        self.attn = nn.MultiheadAttention(d_model, nhead, batch_first=True)
        self.ff = nn.Sequential(nn.Linear(d_model, d_ff), nn.ELU(), nn.Linear(d_ff, d_model))
        self.n1, self.n2 = nn.LayerNorm(d_model), nn.LayerNorm(d_model)

    def forward(self, x, mask=None):
        x = self.n1(x + self.attn(x, x, x, attn_mask=mask)[0])
        return self.n2(x + self.ff(x))
"""


@pytest.mark.proof
def test_activation_of_a_layer_that_is_no_option_is_one_question(tmp_path):
    with pytest.raises(Unclear, match="its activation is elu, and no option of the spec"):
        adapted(tmp_path, "EncoderLayer", LAYER)


def test_layer_with_an_option_and_without_a_residual_connection_is_a_violation(tmp_path):
    code = LAYER.replace("nn.ELU", "nn.GELU").replace("self.n2(x + ", "self.n2(")
    assert broken(adapted(tmp_path, "EncoderLayer", code), "encoder.layer-formula")
