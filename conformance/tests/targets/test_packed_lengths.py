"""Lengths of code that unpads its input: the rows of padding have no output of the formula's."""

from pathlib import Path

import pytest
from mistaken_code import adapted

from attentest.targets.adapt import Unclear

CODE = """
import torch
from torch import nn
from torch.nn.functional import scaled_dot_product_attention


class PackedSelfAttention(nn.Module):
    def __init__(self, d_model: int, heads: int):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(d_model, 3 * d_model, bias=False)
        self.out = nn.Linear(d_model, d_model, bias=False)

    def forward(self, x, lengths=None):
        lengths = torch.full((len(x),), x.shape[1]) if lengths is None else lengths
        real = torch.arange(x.shape[1]) < lengths[:, None]
        output = torch.zeros_like(x)
        begin, packed = 0, self.qkv(x[real])
        for sample, length in enumerate(lengths.tolist()):
            one = packed[begin : begin + length].unflatten(-1, (3, self.heads, -1))
            query, key, value = one.permute(1, 2, 0, 3)
            mixed = scaled_dot_product_attention(query, key, value)
            output[sample, :length] = self.out(mixed.transpose(0, 1).flatten(1))
            begin += length
        return output
"""


def question(path: Path, code: str) -> str:
    with pytest.raises(Unclear) as failure:
        adapted(path, "PackedSelfAttention", code)
    return str(failure.value)


def test_lengths_that_hide_queries_too_are_asked_about_truly(tmp_path: Path) -> None:
    asked = question(tmp_path, CODE)
    assert "lengths hides the rows of queries as well as keys" in asked
    assert "--give lengths=None judges it without" in asked


def test_lengths_that_are_needed_are_not_left_out(tmp_path: Path) -> None:
    default = "torch.full((len(x),), x.shape[1]) if lengths is None else lengths"
    needed = CODE.replace(default, "lengths").replace("lengths=None):", "lengths):")
    assert "lengths=None raises an error" in question(tmp_path, needed)


def test_sequences_that_begin_one_row_late_are_asked_about_otherwise(tmp_path: Path) -> None:
    late = CODE.replace("begin += length", "begin += length - 1")
    assert "does not hide the others" in question(tmp_path, late)
