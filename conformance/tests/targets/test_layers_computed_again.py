"""Decoder-only models whose layers are computed again in the backward pass."""

from pathlib import Path

import pytest
import torch
from folders import SUPPORT
from mistaken_code import adapted, broken
from torch import nn
from torch.utils.checkpoint import checkpoint

from attentest_spec.torch.gradients import gradients

NANO = (SUPPORT / "wild_language_models" / "nano.py").read_text()
SOURCE = NANO.replace("x = block(x)", "x = checkpoint(block, x, use_reentrant=True)").replace(
    "import torch\n", "import torch\nfrom torch.utils.checkpoint import checkpoint\n", 1
)


def test_gradients_of_layers_that_are_computed_again() -> None:
    layer, x = nn.Linear(3, 3).double(), torch.randn(2, 3, dtype=torch.float64, requires_grad=True)
    other = torch.ones(1, dtype=torch.float64, requires_grad=True)
    wanted = [x, layer.weight, other]
    plain = gradients(layer(x).square().sum(), wanted)
    layer.weight.grad = torch.ones_like(layer.weight)
    again = gradients(checkpoint(layer, x, use_reentrant=True).square().sum(), wanted)
    assert plain[2] is None
    assert again[2] is None
    assert all(torch.equal(one, two) for one, two in zip(plain[:2], again[:2], strict=True))
    assert torch.equal(layer.weight.grad, torch.ones_like(layer.weight))
    assert x.grad is None


def test_failures_of_other_backward_passes_are_raised() -> None:
    x = torch.ones(2, requires_grad=True)
    x.register_hook(lambda _: (_ for _ in ()).throw(RuntimeError("of a user")))
    with pytest.raises(RuntimeError, match="of a user"):
        gradients(x.sum(), [x])


@pytest.mark.proof
@pytest.mark.filterwarnings("ignore:None of the inputs have requires_grad")
def test_a_model_with_such_layers_is_judged(tmp_path: Path) -> None:
    backend = adapted(tmp_path, "GPT", SOURCE)
    assert not broken(backend, "language_model.gradient", "language_model.formula")
    wrong = SOURCE.replace("x = x + self.attn", "x = self.attn")
    assert broken(adapted(tmp_path, "GPT", wrong), "language_model.formula")
