"""Networks in which some maps have a bias and others none: a question, and no error."""

import pytest
from mistaken_code import adapted, broken

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


def test_network_with_a_bias_in_two_of_three_maps_is_asked_about(tmp_path):
    with pytest.raises(Unclear, match=r"there is no bias with up\.weight"):
        adapted(tmp_path, "SwiGLU", NETWORK)


def test_layer_with_a_bias_in_one_of_two_norms_is_asked_about(tmp_path):
    with pytest.raises(Unclear, match=r"there is no bias with norm1\.weight"):
        adapted(tmp_path, "EncoderLayer", LAYER)


@pytest.mark.parametrize("bias", ["True", "False"])
def test_mistakes_in_networks_with_all_biases_or_none_are_detected(tmp_path, bias):
    even = NETWORK.replace("bias=True", f"bias={bias}").replace("bias=False", f"bias={bias}")
    assert not broken(adapted(tmp_path, "SwiGLU", even), "feed_forward.formula")
    late = even.replace("F.silu(self.gate(x)) * self.up(x)", "F.silu(self.gate(x) * self.up(x))")
    assert broken(adapted(tmp_path, "SwiGLU", late), "feed_forward.formula")
