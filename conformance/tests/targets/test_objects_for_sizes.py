"""Encoders of tokens that take a vocabulary, or vectors of words, and no sizes of these."""

from pathlib import Path

import pytest
from mistaken_code import adapted, asked_or_broken, broken, edited

pytestmark = pytest.mark.filterwarnings("ignore:enable_nested_tensor")

SOURCE = """
import torch
from torch import nn


class NewsNet(nn.Module):
    def __init__(self, vocab, num_classes, embed_size=64, num_heads=4, num_layers=2, dim_ff=128):
        super().__init__()
        self.embed = nn.Embedding(len(vocab), embed_size, padding_idx=vocab["<pad>"])
        layer = nn.TransformerEncoderLayer(embed_size, num_heads, dim_ff, batch_first=True)
        self.net = nn.TransformerEncoder(layer, num_layers)
        self.out = nn.Linear(embed_size, num_classes)

    def forward(self, text):
        x = self.embed(text) * self.embed.embedding_dim ** 0.5
        return self.out(self.net(x).mean(1))
"""
CLAUSES = "encoder.formula", "encoder.depth-counts"
TABLE = 'self.embed = nn.Embedding(len(vocab), embed_size, padding_idx=vocab["<pad>"])'
FORMS = {
    "vocabulary": (),
    "words by id": (("len(vocab)", "len(vocab.stoi)"), ('vocab["<pad>"]', "vocab.stoi['<pad>']")),
    "vectors": (
        (TABLE, "self.embed = nn.Embedding.from_pretrained(vectors, freeze=False)"),
        ("vocab, num_classes, embed_size=64", "vectors, num_classes"),
        ("        layer =", "        embed_size = vectors.shape[1]\n        layer ="),
        ("dim_ff", "hidden_dim"),
    ),
}


@pytest.mark.parametrize("form", FORMS)
def test_objects_in_the_place_of_sizes_are_made(tmp_path: Path, form: str) -> None:
    backend = adapted(tmp_path, "NewsNet", edited(SOURCE, *FORMS[form]), component="encoder")
    assert not broken(backend, *CLAUSES)
    assert any("vocabulary" in one or "vector" in one for one in backend.assumed)


@pytest.mark.parametrize(
    ("right", "wrong"), [("** 0.5", "** -0.5"), ("batch_first=True", "batch_first=False")]
)
def test_mistakes_around_a_vocabulary_are_found(tmp_path: Path, right: str, wrong: str) -> None:
    assert asked_or_broken(tmp_path, "NewsNet", SOURCE, right, wrong, *CLAUSES)


def test_an_adapter_with_a_vocabulary_is_written_out(tmp_path: Path) -> None:
    text = adapted(tmp_path, "NewsNet", SOURCE, component="encoder").written()
    assert "class Vocabulary" in text
    compile(text, "own", "exec")
