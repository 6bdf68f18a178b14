"""Encodings that multiply their input are a question, which names a table that no option gives."""

import pytest
from mistaken_code import adapted

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


@pytest.mark.parametrize(
    ("exponent", "said"),
    [("i", "encoding in one(?!;)"), ("(2 * (i + 1))", r"in one; nor is its table .* at \(1, 1\)")],
)
def test_table_of_a_scaled_encoding_is_named_where_no_option_gives_it(tmp_path, exponent, said):
    code = CODE.replace("cos(pos / 10000 ** (i", f"cos(pos / 10000 ** ({exponent}")
    with pytest.raises(Unclear, match=f"the root of d_model: it is the scale .*{said}"):
        adapted(tmp_path, "PositionalEncoder", code)
