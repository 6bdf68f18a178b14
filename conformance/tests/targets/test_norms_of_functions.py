"""Norms that are functions of their weights, which their caller holds."""

from pathlib import Path

import pytest
from mistaken_code import adapted, asked_or_broken, broken

import attentest
from attentest.targets.adapt import Unclear

CODE = """
import torch


def layer_norm(x, g, b, eps=1e-5):
    mean = x.mean(-1, keepdim=True)
    variance = x.var(-1, keepdim=True, unbiased=False)
    return g * (x - mean) / torch.sqrt(variance + eps) + b


def rms_norm_ref(x, weight, bias, z=None, eps=1e-6):
    out = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps) * weight
    return out + bias if bias is not None else out


def rms_norm(x, weight, wobble):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + wobble) * weight
"""
OF_RMS = ("rms_norm.formula", "rms_norm.weight", "rms_norm.parameters-trained")


def test_norms_of_functions_conform(tmp_path: Path) -> None:
    backend = adapted(tmp_path, "layer_norm", CODE)
    assert any("its caller holds g and b" in one for one in backend.understood)
    trained = "layer_norm.parameters-trained"
    assert broken(backend, "layer_norm.formula", "layer_norm.gain-and-bias", trained) == []
    assert broken(adapted(tmp_path, "rms_norm_ref", CODE), *OF_RMS) == []


@pytest.mark.parametrize(
    ("name", "right", "wrong", "clauses"),
    [
        ("layer_norm", "g * (x - mean)", "(x - mean)", ["layer_norm.gain-and-bias"]),
        ("layer_norm", "torch.sqrt(variance + eps)", "(variance + eps)", ["layer_norm.formula"]),
        ("rms_norm_ref", "eps) * weight", "eps) * (1 + weight) * weight", OF_RMS),
    ],
)
def test_mistakes_in_norms_of_functions_are_caught(
    tmp_path: Path, name: str, right: str, wrong: str, clauses: list[str]
) -> None:
    assert asked_or_broken(tmp_path, name, CODE, right, wrong, *clauses)


OF_CALLER = """
import torch


def _rms_norm(x, alpha, dtype, eps):
    x_dtype = x.dtype
    x = x if dtype is None else x.to(dtype)
    return (x * (alpha.to(x) * torch.rsqrt(eps + x.pow(2).mean(2, keepdim=True)))).to(x_dtype)
"""


def test_epsilon_of_the_caller_is_a_usual_one(tmp_path: Path) -> None:
    assert broken(adapted(tmp_path, "_rms_norm", OF_CALLER), *OF_RMS) == []
    wrong = "alpha.to(x) / (eps"
    assert asked_or_broken(
        tmp_path, "_rms_norm", OF_CALLER, "alpha.to(x) * torch.rsqrt(eps", wrong, *OF_RMS
    )


def test_other_arguments_are_asked_about(tmp_path: Path) -> None:
    with pytest.raises(Unclear, match="wobble"):
        adapted(tmp_path, "rms_norm", CODE)


def test_written_adapter_holds_the_weights(tmp_path: Path) -> None:
    written = tmp_path / "adapter.py"
    written.write_text(adapted(tmp_path, "layer_norm", CODE).written())
    report = attentest.check(f"{written}:backend", clauses=["layer_norm.gain-and-bias"])
    assert report["layer_norm.gain-and-bias"].status == "pass", str(report)
