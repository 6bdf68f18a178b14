"""Encoders of tokens that run where there are as many samples as tokens, and there alone."""

from pathlib import Path

import pytest
from mistaken_code import adapted, broken, edited

from attentest.targets.adapt import Unclear

pytestmark = pytest.mark.filterwarnings("ignore:enable_nested_tensor")

SOURCE = """
from torch import nn


class Tagger(nn.Module):
    def __init__(self, vocab_size, n_tags, width=64, n_heads=4, d_ff=128, n_layers=2):
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, width, padding_idx=0)
        layer = nn.TransformerEncoderLayer(width, n_heads, d_ff, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, n_layers)
        self.out = nn.Linear(width, n_tags)

    def forward(self, ids):
        return self.out(self.encoder(self.embedding(ids), src_key_padding_mask=ids == 0))
"""
CLAUSES = "encoder.formula", "encoder.padding-invariance"


def test_a_mask_of_padding_is_of_the_layers(tmp_path: Path) -> None:
    assert not broken(adapted(tmp_path, "Tagger", SOURCE), *CLAUSES)


@pytest.mark.parametrize("flag", ["batch_first=False", "dropout=0.1"])
def test_a_mask_for_layers_with_the_sequence_first_is_a_question(tmp_path: Path, flag: str) -> None:
    source = edited(SOURCE, ("batch_first=True", flag))
    with pytest.raises(Unclear, match="as many samples as tokens"):
        adapted(tmp_path, "Tagger", source)


def test_layers_with_the_sequence_first_in_turned_rows_are_right(tmp_path: Path) -> None:
    source = edited(
        SOURCE,
        ("batch_first=True", "batch_first=False"),
        ("self.embedding(ids),", "self.embedding(ids).transpose(0, 1),"),
        ("ids == 0))", "ids == 0).transpose(0, 1))"),
    )
    assert not broken(adapted(tmp_path, "Tagger", source), *CLAUSES)
