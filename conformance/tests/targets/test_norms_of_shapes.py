"""Norms that are built with the shape of their weights, a sequence of one width."""

from pathlib import Path

import pytest
from mistaken_code import adapted, broken, edited

CODE = """
import torch
from torch import nn


class LayerNormalization(nn.Module):
    def __init__(self, parameters_shape, eps=1e-5):
        super().__init__()
        self.parameters_shape, self.eps = parameters_shape, eps
        self.gamma = nn.Parameter(torch.ones(parameters_shape))
        self.beta = nn.Parameter(torch.zeros(parameters_shape))

    def forward(self, inputs):
        dims = [-(axis + 1) for axis in range(len(self.parameters_shape))]
        mean = inputs.mean(dim=dims, keepdim=True)
        variance = ((inputs - mean) ** 2).mean(dim=dims, keepdim=True)
        return self.gamma * (inputs - mean) / (variance + self.eps).sqrt() + self.beta
"""
ANNOTATED = edited(
    CODE,
    ("self, parameters_shape", "self, parameters_shape: tuple[int, ...]"),
    ("len(self.parameters_shape)", "1"),
)

WRAPPED = edited(
    CODE,
    (
        "        super().__init__()\n",
        "        super().__init__()\n"
        "        if isinstance(parameters_shape, int):\n"
        "            parameters_shape = torch.Size([parameters_shape])\n"
        "        assert type(parameters_shape) is torch.Size\n",
    ),
)


@pytest.mark.parametrize("code", [CODE, ANNOTATED, WRAPPED])
def test_norm_of_a_shape_conforms(code: str, tmp_path: Path) -> None:
    backend = adapted(tmp_path, "LayerNormalization", code)
    assert not broken(backend, "layer_norm.formula", "layer_norm.variance")


@pytest.mark.parametrize("code", [CODE, WRAPPED])
def test_norm_of_a_shape_over_the_wrong_axes_is_a_violation(code: str, tmp_path: Path) -> None:
    wrong = edited(code, ("-(axis + 1)", "-(axis + 2)"))
    assert broken(adapted(tmp_path, "LayerNormalization", wrong), "layer_norm.formula")


def test_written_adapter_hands_the_shape(tmp_path: Path) -> None:
    backend = adapted(tmp_path, "LayerNormalization", CODE)
    assert "(sizes.d_model,)" in backend.written()
