"""Encoders that are built with a number of segments."""

from pathlib import Path

import pytest
from mistaken_code import adapted, broken

from attentest.targets.adapt import Unclear

SOURCE = """
import torch
from torch import nn


class Encoder(nn.Module):
    def __init__(self, vocab_size, n_segments, width, n_layers, n_heads):
        super().__init__()
        self.words = nn.Embedding(vocab_size, width)
        self.segments = nn.Embedding(n_segments, width)
        layer = nn.TransformerEncoderLayer(width, n_heads, width * 4, 0.0, batch_first=True)
        self.layers = nn.TransformerEncoder(layer, n_layers, enable_nested_tensor=False)

    def forward(self, ids, segments):
        return self.layers(self.words(ids) + self.segments(segments))
"""


@pytest.mark.proof
def test_a_number_of_segments_is_no_inner_width(tmp_path: Path) -> None:
    backend = adapted(tmp_path, "Encoder", read(""))
    assert any("n_segments" in one for one in backend.understood)
    assert broken(backend, "encoder.formula") == []


def test_a_second_sum_around_the_stack_is_a_question(tmp_path: Path) -> None:
    with pytest.raises(Unclear):
        adapted(tmp_path, "Encoder", read("x + "))


def read(more: str) -> str:
    """Return the encoder, with `more` before the output of its layers."""
    code = SOURCE.replace("return self.layers(", "x = ", 1).replace("(segments))", "(segments)")
    return f"{code}        return {more}self.layers(x)\n"
