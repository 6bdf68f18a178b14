"""Whole models without telling names, and masks that are made on the CPU alone."""

from pathlib import Path

import pytest
from mistaken_code import adapted, broken
from proof import share

from attentest.targets.adapt import Unclear
from attentest.targets.adapt.components import squashed
from attentest.targets.adapt.objects.named_sizes import sizes_by_words
from attentest.targets.models.size_names import size_by_words, sizes_named
from attentest.targets.models.tables.vocabularies import Vocabulary

pytestmark = pytest.mark.filterwarnings("ignore:enable_nested_tensor")

MODEL = """
import torch
from torch import nn


class Translator(nn.Module):
    def __init__(self, sort_a, sort_b, width, heads, inner, depth):
        super().__init__()
        self.first, self.second = nn.Embedding(sort_a, width), nn.Embedding(sort_b, width)
        self.core = nn.Transformer(
            width, heads, depth, depth, inner, dropout=0.0, batch_first=True
        )
        self.last = nn.Linear(width, sort_b)

    def forward(self, src, tgt):
        return self.last(self.core(self.first(src), self.second(tgt)))
"""
MASKED = MODEL.replace(
    "self.second(tgt)",
    """self.second(tgt), tgt_mask=torch.ones(
            tgt.shape[1], tgt.shape[1], dtype=torch.bool, device=tgt.device
        ).triu(1), src_key_padding_mask=src == 0, memory_key_padding_mask=src == 0,
        tgt_key_padding_mask=tgt == 0""",
)


@pytest.mark.proof
@share(2)
@pytest.mark.parametrize("names", [("n_src", "words_out"), ("sort_a", "sort_b")])
def test_vocabularies_without_telling_names_are_read_by_the_tables(names, tmp_path: Path):
    source = MASKED.replace("sort_a", names[0]).replace("sort_b", names[1])
    backend = adapted(tmp_path, "Translator", source)
    assert broken(backend, "model.formula", "model.causality") == []
    backend = adapted(tmp_path, "Translator", source.replace("triu(1)", "triu(2)"))
    assert broken(backend, "model.formula", "model.causality")


@pytest.mark.exhaustive
def test_model_that_hides_nothing_and_names_no_mask_is_one_question(tmp_path: Path):
    with pytest.raises(Unclear, match="takes no mask and hides nothing"):
        adapted(tmp_path, "Translator", MODEL)
    assert broken(adapted(tmp_path, "Translator", MODEL, anyway=True), "model.causality")


MASK = """
import torch


def make_std_mask(tgt, pad):
    length = tgt.shape[-1]
    later = torch.ones(1, length, length).triu(1).bool()
    return (tgt != pad)[:, None] & ~later
"""


def test_mask_that_is_made_on_the_cpu_alone_is_an_assumption(tmp_path: Path):
    backend = adapted(tmp_path, "make_std_mask", MASK)
    assert any("used on the CPU alone" in one for one in backend.assumed)
    assert not backend.limits.any_device
    strict = adapted(tmp_path, "make_std_mask", MASK, strict=True)
    assert broken(strict, "masks.target-is-both", "masks.device")
    moved = MASK.replace("length, length)", "length, length, device=tgt.device)")
    backend = adapted(tmp_path, "make_std_mask", moved)
    assert backend.limits.any_device
    assert broken(backend, "masks.device") == []


@pytest.mark.parametrize("name", ["pe_input", "pe_target", "maximum_position_encoding"])
def test_lengths_of_tables_of_positions_are_lengths(name: str) -> None:
    assert list(sizes_named(name.replace("_", ""), (), "")) == ["max_length"]


def test_a_vocabulary_that_is_taken_for_a_list_ends() -> None:
    """A module that makes a tensor of an argument never returned when it was tried as a model."""
    vocabulary = Vocabulary(7, pad=2)
    assert list(vocabulary) == list(range(7))
    assert [vocabulary["<pad>"], vocabulary["word"], len(vocabulary)] == [2, 1, 7]


@pytest.mark.parametrize(
    ("name", "size"),
    [
        ("encembsize", "d_model"),
        ("decnumhead", "heads"),
        ("encnumlayer", "layers"),
        ("dffencoder", "d_ff"),
        ("hdecoder", "heads"),
        ("tokenencoder", ""),
        ("encoderoutput", ""),
        ("decay", ""),
        ("maxposenclen", "max_length"),
        ("posencdim", ""),
    ],
)
def test_sizes_of_one_side_are_read_without_the_word_of_the_side(name: str, size: str) -> None:
    assert size_by_words(name, "") == size


@pytest.mark.parametrize("name", ["dropout_proba", "drop_prob", "dropoutProbability"])
def test_rates_of_dropout_are_read_by_their_words(name: str) -> None:
    assert size_by_words(squashed(name), "") == "dropout"


def test_a_width_by_a_short_name_is_the_one_that_no_other_name_says() -> None:
    assert sizes_by_words("encoder", ["h_dim"], ["heads"])["h_dim"].words == "d_model"
    assert not sizes_by_words("encoder", ["h_dim"], ["heads", "d_model"])
