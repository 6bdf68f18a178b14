"""Norms that are functions of their epsilon, or have weights that they do not use."""

import pytest
from mistaken_code import adapted, broken, edited

from attentest.targets.adapt.reading import Unclear

FUNCTIONS = """
import torch


def rms_norm(x, eps):
    return x * torch.rsqrt(x.square().mean(dim=-1, keepdim=True) + eps)


def layer_norm(x, eps):
    mean, var = x.mean(-1, keepdim=True), x.var(-1, keepdim=True, correction=0)
    return (x - mean) * torch.rsqrt(var + eps)


class RMSNorm(torch.nn.LayerNorm):
    def forward(self, x):
        return rms_norm(x, self.eps)
"""
MISTAKES = {
    "rms_norm": ("square().mean(dim=-1", "square().sum(dim=-1"),
    "layer_norm": ("torch.rsqrt(var + eps)", "(var + eps)"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_function_of_an_epsilon_conforms_without_weights(tmp_path, name):
    assert not broken(adapted(tmp_path, name, FUNCTIONS), f"{name}.formula", f"{name}.epsilon")


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_in_functions_of_an_epsilon_are_detected(tmp_path, name):
    mistaken = edited(FUNCTIONS, MISTAKES[name])
    assert broken(adapted(tmp_path, name, mistaken), f"{name}.formula")


def test_weights_of_a_constructor_that_are_not_used_are_asked_about(tmp_path):
    with pytest.raises(Unclear, match="uses none of them"):
        adapted(tmp_path, "RMSNorm", FUNCTIONS)
    without = adapted(tmp_path, "RMSNorm", FUNCTIONS, given={"elementwise_affine": False})
    assert not broken(without, "rms_norm.formula")


def test_weight_of_a_constructor_that_is_used_wrongly_is_detected(tmp_path):
    added = edited(FUNCTIONS, ("rms_norm(x, self.eps)", "rms_norm(x, self.eps) + self.weight"))
    assert broken(adapted(tmp_path, "RMSNorm", added), "rms_norm.formula")
