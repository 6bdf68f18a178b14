"""Arguments that are called as the class of the part that they get, and have no annotation."""

from pathlib import Path

import pytest
from mistaken_code import adapted, asked_or_broken, broken, edited

from attentest.targets.adapt import Unclear

LABELLED = """
import torch
from torch import nn


class BERT(nn.Module):
    def __init__(self, vocab_size, d_model, heads, layers, max_length):
        super().__init__()
        self.tokens = nn.Embedding(vocab_size, d_model)
        self.places = nn.Embedding(max_length, d_model)
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(d_model, heads, 4 * d_model, batch_first=True)
            for _ in range(layers)
        )

    def forward(self, x, mask=None):
        x = self.tokens(x) + self.places(torch.arange(x.shape[1]))
        for layer in self.layers:
            x = layer(x, src_key_padding_mask=mask)
        return x


class MaskedWords(nn.Module):
    def __init__(self, bert, d_model, vocab_size):
        super().__init__()
        self.bert, self.head = bert, nn.Linear(d_model, vocab_size)

    def forward(self, x, mask=None):
        return self.head(self.bert(x, mask))
"""


def test_argument_that_is_called_as_a_class_of_the_file_gets_it(tmp_path: Path) -> None:
    backend = adapted(tmp_path, "MaskedWords", LABELLED)
    assert not broken(backend, "encoder.formula")


def test_mistake_in_a_part_that_is_called_as_its_argument_does_not_pass(tmp_path: Path) -> None:
    mistake = ("self.places(torch.arange(x.shape[1]))", "self.places(torch.arange(x.shape[1]))[0]")
    assert asked_or_broken(tmp_path, "MaskedWords", LABELLED, *mistake, "encoder.formula")


def test_number_is_no_part_of_the_class_that_is_called_as_it(tmp_path: Path) -> None:
    text = edited(LABELLED, ("self, bert, d_model", "self, bert: int, d_model"))
    with pytest.raises(Unclear):
        adapted(tmp_path, "MaskedWords", text)
