"""Embeddings that add positions and segments and norm the sum: the rows of tokens are judged."""

import pytest
from mistaken_code import adapted, asked_or_broken, broken
from proof import share

from attentest.targets.adapt import Unclear

FIRST = """
import torch
from torch import nn


class BertEmbeddings(nn.Module):
    def __init__(self, vocab_size, hidden_size, max_position_embeddings):
        super().__init__()
        self.word_embeddings = nn.Embedding(vocab_size, hidden_size, padding_idx=0)
        self.position_embeddings = nn.Embedding(max_position_embeddings, hidden_size)
        self.token_type_embeddings = nn.Embedding(2, hidden_size)
        self.norm = nn.LayerNorm(hidden_size, eps=1e-12)

    def forward(self, input_ids, token_type_ids=None, position_ids=None):
        if position_ids is None:
            position_ids = torch.arange(input_ids.size(1)).expand_as(input_ids)
        if token_type_ids is None:
            token_type_ids = torch.zeros_like(input_ids)
        words = self.word_embeddings(input_ids)
        positions = self.position_embeddings(position_ids)
        return self.norm(words + positions + self.token_type_embeddings(token_type_ids))
"""
SHIFTED = FIRST.replace("torch.arange(input_ids.size(1))", "torch.arange(2, input_ids.size(1) + 2)")
GATHERED = SHIFTED.replace(
    "token_type_ids = torch.zeros_like(input_ids)",
    "token_type_ids = torch.zeros(1, self.most, dtype=int).expand(len(input_ids), -1)"
    ".gather(1, position_ids)",
).replace("        self.norm =", "        self.most = max_position_embeddings\n        self.norm =")
_PAD = (
    ("position_embeddings):", "position_embeddings, pad_token_id):"),
    ("self.most =", "self.pad = pad_token_id\n        self.most ="),
    ("torch.arange(2, input_ids.size(1) + 2)", "(torch.arange(input_ids.size(1)) + self.pad + 1)"),
)
BEHIND_PAD = GATHERED
for _old, _new in _PAD:
    BEHIND_PAD = BEHIND_PAD.replace(_old, _new)
WITHOUT_NORM = FIRST.replace("return self.norm(", "return (").replace(
    "        self.norm = nn.LayerNorm(hidden_size, eps=1e-12)\n", ""
)
RIGHT = {
    "from 0": FIRST,
    "from 2": SHIFTED,
    "gathered": GATHERED,
    "pad": BEHIND_PAD,
    "without a norm": WITHOUT_NORM,
    "segments that must be given": FIRST.replace("token_type_ids=None", "token_type_ids"),
}
SINES = """
import torch
from torch import nn


class Words(nn.Embedding):
    pass


class PositionalEmbedding(nn.Module):
    def __init__(self, width, most=512):
        super().__init__()
        rates = 10000.0 ** (-torch.arange(0, width, 2) / width)
        angles = torch.arange(most)[:, None] * rates
        self.register_buffer("rows", torch.stack((angles.sin(), angles.cos()), -1).view(most, -1))

    def forward(self, ids):
        return self.rows[: ids.size(1)].unsqueeze(0)


class TextEmbedding(nn.Module):
    def __init__(self, vocab_size, embed_size):
        super().__init__()
        self.words = Words(vocab_size, embed_size, padding_idx=0)
        self.positions = PositionalEmbedding(self.words.embedding_dim)
        self.segments = Words(3, embed_size, padding_idx=0)

    def forward(self, ids, segment_label):
        return self.words(ids) + self.positions(ids) + self.segments(segment_label)
"""


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("", ""),
        ("return self.words(ids) +", "return self.words(ids).flip(1) +"),
        ("return self.words(ids) +", "return self.words(ids) *"),
        ("self.rows[: ids.size(1)].unsqueeze(0)", "self.rows[ids]"),
    ],
)
def test_rows_of_tokens_are_judged_without_positions_that_are_no_table(tmp_path, old, new):
    if old:
        assert asked_or_broken(tmp_path, "TextEmbedding", SINES, old, new, "embedding.lookup")
        return
    backend = adapted(tmp_path, "TextEmbedding", SINES)
    assert "positions, which gives positions, segments, its row 0" in "".join(backend.assumed)
    assert not broken(backend, "embedding.scale", "embedding.lookup")


def test_a_mistake_where_segments_must_be_given_is_detected_or_asked_about(tmp_path):
    code = FIRST.replace("token_type_ids=None", "token_type_ids")
    old, new = "self.norm(words + positions +", "self.norm(words.flip(1) + positions +"
    assert asked_or_broken(tmp_path, "BertEmbeddings", code, old, new, "embedding.lookup")


@share(2, rest=1)
@pytest.mark.parametrize("name", RIGHT)
def test_rows_of_tokens_are_judged_without_what_is_added(tmp_path, name):
    backend = adapted(tmp_path, "BertEmbeddings", RIGHT[name])
    said = "\n".join(backend.assumed)
    assert "position_embeddings, one row for each position" in said
    assert "token_type_embeddings, its row 0" in said
    assert ("the norm norm" in said) == (name != "without a norm")
    assert not broken(backend, "embedding.scale", "embedding.lookup")


def test_strict_reading_asks(tmp_path):
    with pytest.raises(Unclear):
        adapted(tmp_path, "BertEmbeddings", FIRST, strict=True)


@share(4, rest=1)
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("self.norm(words + positions +", "self.norm(words) + (positions +"),
        ("self.norm(words + positions +", "self.norm(words * 3.0 + positions +"),
        ("self.norm(words + positions +", "self.norm(words - positions +"),
        ("self.norm(words + positions +", "self.norm(words.flip(1) + positions +"),
        ("torch.arange(input_ids.size(1))", "torch.arange(input_ids.size(1)).flip(0)"),
        ("torch.arange(input_ids.size(1))", "torch.arange(input_ids.size(0))[:, None]"),
        ("torch.arange(input_ids.size(1))", "torch.zeros(1, dtype=int)"),
        ("torch.arange(input_ids.size(1))", "2 * torch.arange(input_ids.size(1))"),
        ("self.position_embeddings(position_ids)", "self.position_embeddings(input_ids)"),
    ],
)
def test_mistakes_among_the_tables_are_detected_or_asked_about(tmp_path, old, new):
    own, clause = "BertEmbeddings", "embedding.scale"
    assert asked_or_broken(tmp_path, own, FIRST, old, new, clause)


def test_table_that_the_call_does_not_use_is_asked_about(tmp_path):
    with pytest.raises(Unclear, match=r"no place for position_embeddings\.weight"):
        adapted(
            tmp_path,
            "BertEmbeddings",
            FIRST.replace("words + positions +", "words +").replace(
                "        positions = self.position_embeddings(position_ids)\n", ""
            ),
        )
