"""Models of pairs of tokens, which are one table: no decoder-only model with layers."""

import sys

import pytest
from mistaken_code import asked

from attentest.targets.adapt.reading import Reading
from attentest.targets.file_modules import load
from attentest.targets.language_models.recognition import is_language_model
from attentest.targets.models.recognition import Recognition

CODE = """
import torch
from torch import nn


class Pairs(nn.Module):
    def __init__(self, vocab_size):
        super().__init__()
        self.table = nn.Embedding(vocab_size, vocab_size)
        nn.init.normal_(self.table.weight, std=0.02)

    def forward(self, tokens, targets=None):
        return self.table(tokens), None

    def generate(self, tokens, count):
        for _ in range(count):
            last = self(tokens)[0][:, -1, :]
            tokens = torch.cat([tokens, last.softmax(-1).multinomial(1)], 1)
        return tokens


class BigramLanguageModel(Pairs):
    def __init__(self, vocab_size):
        super().__init__(vocab_size)
        self.table = nn.Embedding(vocab_size, vocab_size)


class GPT(nn.Module):
    def __init__(self, vocab_size, width):
        super().__init__()
        self.table, self.head = nn.Embedding(vocab_size, width), nn.Linear(width, vocab_size)

    def forward(self, tokens):
        return self.head(self.table(tokens))
"""


@pytest.mark.parametrize("name", ["Pairs", "BigramLanguageModel"])
def test_table_of_pairs_of_tokens_is_no_decoder_only_model(tmp_path, name):
    (tmp_path / "own.py").write_text(CODE)
    thing = vars(load(tmp_path / "own.py"))[name]
    assert not is_language_model(thing, Reading(), name)
    facts = Recognition(sys.modules[thing.__module__]).facts("BigramLanguageModel", thing)
    assert facts["component"] == ""


def test_model_with_a_head_and_no_layers_is_still_asked_about(tmp_path):
    (tmp_path / "own.py").write_text(CODE)
    assert "could not be" in asked(f"{tmp_path / 'own.py'}:GPT")
