"""Encodings that multiply their input: by the root of the width, as an embedding does, or else."""

import pytest
from mistaken_code import adapted, broken

from attentest.targets.adapt import Unclear

CODE = """
import math

import torch
from torch import nn


class PositionalEncoder(nn.Module):
    def __init__(self, d_model, T_max=200):
        super().__init__()
        self.d_model = d_model
        pe = torch.zeros(T_max, d_model)
        for pos in range(T_max):
            for i in range(0, d_model, 2):
                pe[pos, i] = math.sin(pos / 10000 ** (i / d_model))
                pe[pos, i + 1] = math.cos(pos / 10000 ** (i / d_model))
        self.register_buffer("pe", pe[None])

    def forward(self, x):
        return x * math.sqrt(self.d_model) + self.pe[:, : x.size(1)]
"""
FORMULA = "positional_encoding.formula"


def test_encoding_that_scales_as_an_embedding_is_judged_without_the_scale(tmp_path):
    backend = adapted(tmp_path, "PositionalEncoder", CODE)
    assert any("in the place of the embedding" in one for one in backend.assumed)
    assert not broken(backend, FORMULA, "positional_encoding.gradient-is-identity")
    assert "Unscaled" in backend.written()


@pytest.mark.parametrize("wrong", ["x.detach()", "x.round(decimals=12)"])
def test_gradient_that_an_encoding_loses_is_a_violation(tmp_path, wrong):
    code = CODE.replace("return x *", f"return {wrong} *")
    backend = adapted(tmp_path, "PositionalEncoder", code)
    assert broken(backend, "positional_encoding.gradient-is-identity")


def test_encoding_that_multiplies_by_the_width_is_one_question(tmp_path):
    code = CODE.replace("math.sqrt(self.d_model)", "self.d_model")
    with pytest.raises(Unclear, match="multiplies its input by 12: it is the scale"):
        adapted(tmp_path, "PositionalEncoder", code)


def test_table_of_a_scaled_encoding_is_named_where_no_option_gives_it(tmp_path):
    code = CODE.replace("cos(pos / 10000 ** (i", "cos(pos / 10000 ** ((2 * (i + 1))")
    said = r"the root of d_model: it is the scale .* in one; nor is its table .* at \(1, 1\)"
    with pytest.raises(Unclear, match=said):
        adapted(tmp_path, "PositionalEncoder", code)
