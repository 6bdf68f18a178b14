"""RMS norms of transformers' families agree with the oracle, to the last digit in bfloat16."""

from importlib import import_module

import numpy as np
import pytest
import torch

from attentest_spec.choices import PAPER
from attentest_spec.precision import dtype
from attentest_spec.rms_norm import rms_norm
from attentest_spec.setting import Floats, Setting

EPSILON = 1e-5
LLAMA = {"rms_cast": "before-weight"}
GEMMA = {"rms_cast": "after-weight", "rms_weight": "one-plus-weight"}
OLMO = {"rms_cast": "after-weight"}
FAMILIES = {
    "llama.LlamaRMSNorm": LLAMA,
    "mistral.MistralRMSNorm": LLAMA,
    "qwen2.Qwen2RMSNorm": LLAMA,
    "phi3.Phi3RMSNorm": LLAMA,
    "mixtral.MixtralRMSNorm": LLAMA,
    "granite.GraniteRMSNorm": LLAMA,
    "gemma.GemmaRMSNorm": GEMMA,
    "gemma2.Gemma2RMSNorm": GEMMA,
    "gemma3.Gemma3RMSNorm": GEMMA,
    "olmo2.Olmo2RMSNorm": OLMO,
    "glm4.Glm4RMSNorm": LLAMA,
}
"""A class of `transformers.models` and the choices that its authors made."""


def built(name: str, width: int) -> torch.nn.Module:
    """Return a new norm of the family."""
    family, _, kind = name.partition(".")
    module = import_module(f"transformers.models.{family}.modeling_{family}")
    norm: torch.nn.Module = getattr(module, kind)(width, eps=EPSILON)
    return norm


def drawn(seed: int, width: int) -> tuple[Floats, Floats]:
    rng = np.random.default_rng(seed)
    return rng.normal(size=(5, 7, width)), 1.0 + 0.5 * rng.normal(size=width)


@pytest.mark.parametrize("name", FAMILIES)
def test_family_says_what_the_oracle_says(name: str) -> None:
    norm, (x, weight) = built(name, 6).double(), drawn(1, 6)
    with torch.no_grad():
        norm.weight.copy_(torch.from_numpy(weight))
        said = norm(torch.from_numpy(x)).numpy()
    choices = PAPER.but(rms_epsilon=EPSILON, rms_arithmetic="float32", **FAMILIES[name])
    expected = rms_norm(Setting(choices=choices, parameters={"gain": weight}), x)
    np.testing.assert_allclose(said, expected, rtol=1e-6, atol=1e-9)
    exact = rms_norm(
        Setting(choices=choices.but(rms_arithmetic="as-computed"), parameters={"gain": weight}), x
    )
    assert np.abs(said - exact).max() > 1e-9, "it computes in float64"


@pytest.mark.parametrize("name", FAMILIES)
def test_family_rounds_in_the_declared_order(name: str) -> None:
    norm, (x, weight) = built(name, 16).bfloat16(), drawn(2, 16)
    narrow = dtype("bfloat16")
    x, weight = (one.astype(narrow).astype(np.float64) for one in (x, weight))
    with torch.no_grad():
        norm.weight.copy_(torch.from_numpy(weight))
        said = norm(torch.from_numpy(x).bfloat16()).double().numpy()
    choices = PAPER.but(rms_epsilon=EPSILON, rms_weight="none")
    rows = rms_norm(Setting(choices=choices), x)
    factor = weight + (FAMILIES[name].get("rms_weight") == "one-plus-weight")
    once = (rows * factor).astype(narrow).astype(np.float64)
    twice = (rows.astype(narrow).astype(np.float64) * factor).astype(narrow).astype(np.float64)
    apart = once != twice
    declared = twice if FAMILIES[name]["rms_cast"] == "before-weight" else once
    assert apart.mean() > 0.1
    assert (said == declared)[apart].mean() > 0.98
