"""Code in which some maps have a bias and others none: judged with one in each."""

import pytest
from mistaken_code import adapted, asked_or_broken, broken

from attentest.targets.adapt.reading import Unclear

NETWORK = """
from torch import nn
from torch.nn import functional as F


class SwiGLU(nn.Module):
    def __init__(self, d_model, d_ff):
        super().__init__()
        self.gate = nn.Linear(d_model, d_ff, bias=True)
        self.up = nn.Linear(d_model, d_ff, bias=False)
        self.down = nn.Linear(d_ff, d_model, bias=True)

    def forward(self, x):
        return self.down(F.silu(self.gate(x)) * self.up(x))
"""
LAYER = """
from torch import nn


class EncoderLayer(nn.Module):
    def __init__(self, d_model, num_heads, d_ff):
        super().__init__()
        self.attention = nn.MultiheadAttention(d_model, num_heads, batch_first=True)
        self.inner = nn.Linear(d_model, d_ff)
        self.outer = nn.Linear(d_ff, d_model)
        self.norm1 = nn.LayerNorm(d_model, bias=False)
        self.norm2 = nn.LayerNorm(d_model)

    def forward(self, x):
        x = self.norm1(x + self.attention(x, x, x)[0])
        return self.norm2(x + self.outer(self.inner(x).relu()))
"""


def test_network_with_a_bias_in_two_of_three_maps_is_judged_with_one_in_each(tmp_path):
    backend = adapted(tmp_path, "SwiGLU", NETWORK)
    assert "assumed that no bias in up is meant" in "".join(backend.assumed)
    assert not broken(backend, "feed_forward.formula")


def test_layer_with_a_bias_in_one_of_two_norms_is_judged_with_one_in_each(tmp_path):
    backend = adapted(tmp_path, "EncoderLayer", LAYER)
    assert "assumed that no bias in norm1 is meant" in "".join(backend.assumed)
    assert not broken(backend, "encoder.layer-formula")


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("F.silu(self.gate(x)) * self.up(x)", "F.silu(self.gate(x)) * F.silu(self.up(x))"),
        ("F.silu(self.gate(x)) * self.up(x)", "F.silu(self.gate(x) * self.up(x))"),
    ],
)
def test_mistakes_in_networks_with_some_biases_are_not_passed(tmp_path, right, wrong):
    assert asked_or_broken(tmp_path, "SwiGLU", NETWORK, right, wrong, "feed_forward.formula")


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        (
            "self.norm1(x + self.attention(x, x, x)[0])",
            "x + self.norm1(self.attention(x, x, x)[0])",
        ),
        (
            "self.norm2(x + self.outer(self.inner(x).relu()))",
            "self.norm2(self.outer(self.inner(x)))",
        ),
        ("self.norm2(x +", "self.norm1(x +"),
    ],
)
def test_mistakes_in_layers_with_some_biases_are_not_passed(tmp_path, right, wrong):
    assert asked_or_broken(tmp_path, "EncoderLayer", LAYER, right, wrong, "encoder.layer-formula")


def test_some_biases_are_asked_about_where_nothing_is_assumed(tmp_path):
    with pytest.raises(Unclear, match=r"there is no bias with norm1\.weight"):
        adapted(tmp_path, "EncoderLayer", LAYER, strict=True)


@pytest.mark.parametrize("bias", ["True", "False"])
def test_mistakes_in_networks_with_all_biases_or_none_are_detected(tmp_path, bias):
    even = NETWORK.replace("bias=True", f"bias={bias}").replace("bias=False", f"bias={bias}")
    assert not broken(adapted(tmp_path, "SwiGLU", even), "feed_forward.formula")
    late = even.replace("F.silu(self.gate(x)) * self.up(x)", "F.silu(self.gate(x) * self.up(x))")
    assert broken(adapted(tmp_path, "SwiGLU", late), "feed_forward.formula")
