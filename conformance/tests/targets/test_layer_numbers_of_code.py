"""Encoders whose numbers of layers and of heads are in their code, and no arguments."""

from pathlib import Path

import pytest
from mistaken_code import adapted, asked_or_broken, broken, edited

from attentest.targets.adapt import Unclear

pytestmark = pytest.mark.filterwarnings("ignore:enable_nested_tensor")

TAGGER = """
import torch
from torch import nn


class Tagger(nn.Module):
    def __init__(self, vocab_size, max_len=50, width=64):
        super().__init__()
        self.tokens = nn.Embedding(vocab_size, width, padding_idx=0)
        self.places = nn.Parameter(torch.randn(1, max_len, width))
        layer = nn.TransformerEncoderLayer(width, 8, 4 * width, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 6)
        self.head = nn.Linear(width, 1)

    def forward(self, ids, mask=None):
        x = self.tokens(ids) + self.places[:, : ids.size(1)]
        x = self.encoder(x, src_key_padding_mask=mask)
        return self.head(x[:, 0]).squeeze(1)
"""
STACK = """
import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.attention = nn.MultiheadAttention(width, 4, batch_first=True)
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.up, self.down = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)

    def forward(self, x):
        x = self.norm1(x + self.attention(x, x, x)[0])
        return self.norm2(x + self.down(torch.relu(self.up(x))))


class Classifier(nn.Module):
    def __init__(self, vocab_size, width, num_classes):
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, width)
        self.blocks = nn.ModuleList([Block(width) for _ in range(2)])
        self.out = nn.Linear(width, num_classes)

    def forward(self, tokens):
        x = self.embedding(tokens)
        for block in self.blocks:
            x = block(x)
        return self.out(x.mean(1))
"""
CLAUSES = "encoder.formula", "encoder.depth-counts", "encoder.stack-of-one-is-a-layer"
FORMS = {
    "places": (),
    "keywords": (
        ("width, 8, 4", "width, nhead=8, dim_feedforward=4"),
        ("(layer, 6)", "(layer, num_layers=2)"),
    ),
    "heads of an argument": (
        ("width=64", "width=64, num_heads=4"),
        ("width, 8,", "width, num_heads,"),
        ("(layer, 6)", "(layer, num_layers=4)"),
    ),
    "one layer": (("(layer, 6)", "(layer, num_layers=1)"),),
}


@pytest.mark.parametrize("form", FORMS)
def test_numbers_of_layers_and_heads_in_calls_of_torch_are_sizes(tmp_path: Path, form: str) -> None:
    backend = adapted(tmp_path, "Tagger", edited(TAGGER, *FORMS[form]))
    assert not broken(backend, *CLAUSES)


@pytest.mark.parametrize(
    "list_",
    [
        "[Block(width) for _ in range(2)]",
        "[Block(width), Block(width)]",
        "Block(width) for _ in range(3)",
    ],
)
def test_lists_of_a_fixed_length_are_judged_at_any(tmp_path: Path, list_: str) -> None:
    source = edited(STACK, ("[Block(width) for _ in range(2)]", list_))
    assert not broken(adapted(tmp_path, "Classifier", source), *CLAUSES)


def test_a_stack_of_vectors_with_a_fixed_length_is_judged_at_any(tmp_path: Path) -> None:
    edits = (
        ("class Classifier", "class Encoder"),
        ("vocab_size, width, num_classes", "width"),
        ("        self.embedding = nn.Embedding(vocab_size, width)\n", ""),
        ("        self.out = nn.Linear(width, num_classes)\n", ""),
        ("self.embedding(tokens)", "tokens"),
        ("self.out(x.mean(1))", "x"),
    )
    assert not broken(adapted(tmp_path, "Encoder", edited(STACK, *edits)), *CLAUSES)


def test_a_length_that_nothing_can_change_is_a_question(tmp_path: Path) -> None:
    fixed = "        blocks = [Block(width)]\n        blocks = blocks + [Block(width)]\n"
    source = edited(
        STACK,
        ("        self.blocks", f"{fixed}        self.blocks"),
        ("[Block(width) for _ in range(2)]", "blocks"),
    )
    with pytest.raises(Unclear):
        adapted(tmp_path, "Classifier", source, component="encoder")


@pytest.mark.proof
@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("self.norm2(x + self.down", "self.norm1(x + self.down"),
        ("return self.norm2(x + ", "return self.norm2("),
        ("for block in self.blocks:", "for block in self.blocks[1:]:"),
    ],
)
def test_mistakes_of_layers_in_a_fixed_list_are_no_sizes(
    tmp_path: Path, right: str, wrong: str
) -> None:
    assert asked_or_broken(tmp_path, "Classifier", STACK, right, wrong, *CLAUSES)
