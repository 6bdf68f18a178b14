"""Encoders whose layers attend over the samples of a batch, as those of torch do by default."""

import pytest
from mistaken_code import adapted, broken
from proof import share

from attentest.targets.adapt import Unclear
from attentest.targets.members import members

TEXTS = """
import torch
from torch import nn


class BERT(nn.Module):
    def __init__(self, vocab_size, d_model, num_heads, num_layers, d_ff, max_len):
        super().__init__()
        self.tokens, self.segments = nn.Embedding(vocab_size, d_model), nn.Embedding(3, d_model)
        self.places = nn.Embedding(max_len, d_model)
        layer = nn.TransformerEncoderLayer(d_model, num_heads, d_ff, batch_first=True)
        self.layers = nn.TransformerEncoder(layer, num_layers, enable_nested_tensor=False)

    def forward(self, ids, segments):
        places = self.places(torch.arange(ids.shape[1]))
        return self.layers(self.tokens(ids) + self.segments(segments) + places)
"""
IMAGES = """
from torch import nn
import torch


class ViT(nn.Module):
    def __init__(self, image_size, patch_size, num_classes, dim, depth, heads, mlp_dim):
        super().__init__()
        self.patches = nn.Conv2d(3, dim, patch_size, patch_size)
        self.first = nn.Parameter(torch.randn(1, 1, dim))
        self.places = nn.Parameter(torch.randn(1, (image_size // patch_size) ** 2 + 1, dim))
        layer = nn.TransformerEncoderLayer(dim, heads, mlp_dim, batch_first=True)
        self.layers = nn.TransformerEncoder(layer, depth, enable_nested_tensor=False)
        self.head = nn.Linear(dim, num_classes)

    def forward(self, image):
        x = self.patches(image).flatten(2).transpose(1, 2)
        x = torch.cat([self.first.expand(len(x), -1, -1), x], 1) + self.places
        return self.head(self.layers(x)[:, 0])
"""
FIRST = "batch_first=True"
PLACES = "self.places(torch.arange(ids.shape[1]))"


@share(2, rest=1)
@pytest.mark.parametrize("returned", ["{}", "{}.mean(1)", "({}, None)"])
def test_encoder_of_texts_that_attends_over_the_batch_is_a_violation(tmp_path, returned):
    """The layers by themselves are right in either order, and hide the mistake of their caller."""
    call = "self.layers(self.tokens(ids) + self.segments(segments) + places)"
    source = TEXTS.replace(call, returned.format(call))
    assert not broken(adapted(tmp_path, "BERT", source), "encoder.formula")
    backend = adapted(tmp_path, "BERT", source.replace(FIRST, "batch_first=False"))
    assert "they attend over the batch" in backend.assumed[0]
    assert broken(backend, "encoder.formula")


@pytest.mark.proof
def test_encoder_of_texts_with_another_mistake_as_well_is_asked_about(tmp_path):
    source = TEXTS.replace(FIRST, "batch_first=False, activation=torch.sin")
    with pytest.raises(Unclear, match=r"mixes the samples|mistake, or a design|do not give"):
        adapted(tmp_path, "BERT", source)


def test_encoder_of_texts_that_attends_over_the_batch_is_asked_about_where_that_is_strict(tmp_path):
    with pytest.raises(Unclear):
        adapted(tmp_path, "BERT", TEXTS.replace(FIRST, "batch_first=False"), strict=True)


def test_encoder_of_images_that_attends_over_the_batch_is_asked_about(tmp_path):
    assert "encoder" in adapted(tmp_path, "ViT", IMAGES).recipes
    with pytest.raises(Unclear, match="mixes the samples of a batch"):
        adapted(tmp_path, "ViT", IMAGES.replace(FIRST, "batch_first=False"))
    assert {one.name: one.component for one in members(str(tmp_path / "own.py"))} == {
        "ViT": "encoder"
    }


def test_encoder_of_sequences_first_has_its_positions_there(tmp_path):
    source = TEXTS.replace(FIRST, "batch_first=False")
    source = source.replace(PLACES, "self.places(torch.arange(len(ids)))[:, None]")
    backend = adapted(tmp_path, "BERT", source)
    assert any("takes ids (L, B)" in one for one in backend.assumed)
    assert not broken(backend, "encoder.formula")


def test_encoder_that_is_random_mixes_nothing(tmp_path):
    source = TEXTS.replace("return self.layers(", "return nn.functional.dropout(") + "\n"
    source = source.replace("+ places)", "+ places) + 0 * self.layers(self.tokens(ids))")
    with pytest.raises(Unclear) as question:
        adapted(tmp_path, "BERT", source)
    assert "mixes the samples" not in str(question.value)


ONE = """

if __name__ == "__main__":
    words, longest = 300, 12
    ids, segments = torch.randint(words, size=[{}]), torch.zeros(longest, dtype=torch.long)
    sample = torch.randint(high=words, size=[{}])
    bert = BERT(words, 16, 2, 2, 32, longest)
    print(bert(sample, segments).shape)
"""


@pytest.mark.parametrize(("size", "is_one"), [("longest,", True), ("4, longest", False)])
def test_encoder_of_texts_that_its_file_calls_with_one_text_is_asked_about(tmp_path, size, is_one):
    source = TEXTS.replace(FIRST, "batch_first=False") + ONE.format(size, size)
    if is_one:
        with pytest.raises(Unclear, match="mixes the samples of a batch"):
            adapted(tmp_path, "BERT", source)
    else:
        assert broken(adapted(tmp_path, "BERT", source), "encoder.formula")
