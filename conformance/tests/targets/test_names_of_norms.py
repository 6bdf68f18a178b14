"""Norms whose names say the same of both parameters: the one that begins with ones is the gain."""

import pytest
from mistaken_code import adapted, broken

from attentest.targets.adapt import Unclear

NORM = """
import torch
from torch import nn


class LN(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.mean_scale = nn.Parameter(torch.zeros(dim))
        self.std_scale = nn.Parameter(torch.ones(dim))

    def forward(self, x):
        mean = x.mean(dim=-1, keepdim=True)
        std = (x.var(dim=-1, keepdim=True, unbiased=False) + 1e-5) ** 0.5
        return (x - mean) / std * self.std_scale + self.mean_scale
"""


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("mean_scale", "std_scale"),
        ("mean_bias", "std_bias"),
        ("mean_part", "std_bias"),
        ("mean_scale", "std_part"),
        ("mean_part", "std_part"),
    ],
)
def test_gain_is_the_parameter_of_ones_where_names_say_nothing(tmp_path, first, second):
    code = NORM.replace("mean_scale", first).replace("std_scale", second)
    assert not broken(adapted(tmp_path, "LN", code), "layer_norm.formula")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("(x - mean) / std * self.std_scale", "(x - mean) / std.sqrt() * self.std_scale"),
        ("std * self.std_scale + self.mean_scale", "std * self.mean_scale + self.std_scale"),
        ("(x - mean) / std", "x / std"),
    ],
)
def test_mistakes_in_such_norms_are_detected(tmp_path, old, new):
    code = NORM.replace(old, new)
    assert code != NORM
    try:
        backend = adapted(tmp_path, "LN", code)
    except Unclear:
        return
    assert broken(backend, "layer_norm.formula")


T5 = """
import torch
from torch import nn


class T5LayerNorm(nn.Module):
    def __init__(self, hidden_size, eps=1e-6):
        super().__init__()
        self.weight, self.eps = nn.Parameter(torch.ones(hidden_size)), eps

    def forward(self, x):
        return self.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps))
"""


def test_layer_norm_of_t5_is_an_rms_norm(tmp_path):
    assert not broken(adapted(tmp_path, "T5LayerNorm", T5), "rms_norm.formula")
    (tmp_path / "wrong").mkdir()
    wrong = T5.replace("torch.rsqrt(", "torch.sqrt(")
    assert broken(adapted(tmp_path / "wrong", "T5LayerNorm", wrong), "rms_norm.formula")
