"""Whole models with names of parts, and functions beside them that are no components."""

from pathlib import Path

import pytest

from attentest.targets.members import members

MODEL = """
import torch
from torch import nn


class AttentionV2(nn.Module):
    def __init__(self, src_vocab_len, tgt_vocab_len, embed_dim, num_head, src_pad, tgt_pad):
        super().__init__()
        self.body = nn.Transformer(embed_dim, num_head, 2, 2, 4 * embed_dim, 0.0, batch_first=True)
        self.source = nn.Embedding(src_vocab_len, embed_dim)
        self.target = nn.Embedding(tgt_vocab_len, embed_dim)
        self.head = nn.Linear(embed_dim, tgt_vocab_len)

    def forward(self, inputs, outputs):
        return self.head(self.body(self.source(inputs), self.target(outputs)))
"""


def components(folder: Path, source: str) -> dict[str, str]:
    """Return the components of the members of a file with `source`, by name."""
    file = folder / "own.py"
    file.write_text(source)
    return {one.name: one.component for one in members(str(file)) or ()}


def test_class_with_two_vocabularies_is_a_whole_model_whatever_its_name(tmp_path: Path) -> None:
    assert components(tmp_path, MODEL) == {"AttentionV2": "model"}


def test_attention_with_one_vocabulary_is_no_whole_model(tmp_path: Path) -> None:
    one = MODEL.replace("src_vocab_len, tgt_vocab_len, ", "").replace("_vocab_len", "_dim")
    assert components(tmp_path, one)["AttentionV2"] != "model"


GREEDY = """

def greedy_decode(model, {}, max_len, start):
    return max_len
"""


@pytest.mark.parametrize(
    ("arguments", "component"),
    [
        ("tokenizer, text", ""),
        ("src_sentence, src_vocab", ""),
        ("loader", ""),
        ("src", "greedy_decoding"),
    ],
)
def test_function_that_decodes_texts_is_no_component(
    arguments: str, component: str, tmp_path: Path
) -> None:
    found = components(tmp_path, MODEL + GREEDY.format(arguments))
    assert found["greedy_decode"] == component


MAKER = """

def build_model(name: str, config: dict, size: int):
    if name == "attention":
        return AttentionV2(size, size, config["width"], config["heads"], 0, 0)
    raise ValueError(name)
"""


def test_function_that_cannot_be_called_is_left_where_its_class_is_judged(tmp_path: Path) -> None:
    named = MODEL.replace("AttentionV2", "Transformer")
    found = components(tmp_path, named + MAKER.replace("AttentionV2", "Transformer"))
    assert found == {"Transformer": "model", "build_model": ""}


ATTENTION = """

def attention(query, key, value, mask):
    scores = (query @ key.mT / query.shape[-1] ** 0.5).masked_fill(mask == 0, -1e9)
    return scores.softmax(-1) @ value


class Heads(nn.Module):
    def forward(self, x, mask):
        return attention(x, x, x, mask)
"""


def test_function_that_a_whole_model_calls_is_a_part_of_it(tmp_path: Path) -> None:
    file = tmp_path / "own.py"
    inside = MODEL.replace("self.source = ", "self.own = Heads()\n        self.source = ")
    file.write_text(inside + ATTENTION)
    found = {one.name: one.inside for one in members(str(file)) or ()}
    assert found["attention"] == "AttentionV2"


WITH_PADS = """
from torch import nn

WIDTH, HEADS, LAYERS = 128, 4, 2


class TranslationModel(nn.Module):
    def __init__(self, zh_vocab_size, en_vocab_size, zh_padding_idx, en_padding_idx):
        super().__init__()
        self.source = nn.Embedding(zh_vocab_size, WIDTH, padding_idx=zh_padding_idx)
        self.target = nn.Embedding(en_vocab_size, WIDTH, padding_idx=en_padding_idx)
        self.stacks = nn.Transformer(WIDTH, HEADS, LAYERS, LAYERS, batch_first=True)
        self.out = nn.Linear(WIDTH, en_vocab_size)

    def encode(self, src, src_mask):
        return self.stacks.encoder(self.source(src), src_key_padding_mask=src_mask)

    def forward(self, src, tgt, src_mask, tgt_mask):
        memory = self.encode(src, src_mask)
        return self.out(self.stacks.decoder(self.target(tgt), memory, tgt_mask=tgt_mask))
"""


def test_model_whose_arguments_may_be_switches_is_no_encoder(tmp_path: Path) -> None:
    assert components(tmp_path, WITH_PADS) == {"TranslationModel": "model"}
