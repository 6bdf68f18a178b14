"""Embeddings that add positions inside: what they compute without these is judged."""

import pytest
from mistaken_code import adapted, asked_or_broken, broken
from proof import share

from attentest.targets.adapt import Unclear

CLASSES = """
import torch
from torch import nn


class PositionalEncoding(nn.Module):
    def __init__(self, d_model, max_len):
        super().__init__()
        at = torch.arange(max_len)[:, None] / 10000 ** (torch.arange(0, d_model, 2) / d_model)
        table = torch.zeros(max_len, d_model)
        table[:, 0::2], table[:, 1::2] = at.sin(), at.cos()
        self.register_buffer("table", table)

    def forward(self, x):
        return TABLE


class TransformerEmbedding(nn.Module):
    def __init__(self, vocab_size, d_model, max_len, drop_prob):
        super().__init__()
        self.tok_emb = nn.Embedding(vocab_size, d_model, padding_idx=1)
        self.pos_emb = PositionalEncoding(d_model, max_len)
        self.drop_out = nn.Dropout(p=drop_prob)
        self.d_model = d_model

    def forward(self, x):
        return self.drop_out(SUM)
"""
OF_IDS = CLASSES.replace("TABLE", "self.table[: x.size(1), :]").replace(
    "SUM", "self.tok_emb(x) + self.pos_emb(x)"
)
OF_ROWS = CLASSES.replace("TABLE", "x + self.table[: x.size(1)]").replace(
    "SUM", "self.pos_emb(self.tok_emb(x) * self.d_model**0.5)"
)
LEARNED = OF_IDS.replace(
    "PositionalEncoding(d_model, max_len)", "nn.Embedding(max_len, d_model)"
).replace("self.pos_emb(x)", "self.pos_emb(torch.arange(x.size(1))[None])")
SOUND = {"ids": OF_IDS, "rows": OF_ROWS, "learned": LEARNED}


@pytest.mark.parametrize("name", SOUND)
def test_an_embedding_is_judged_without_its_positions(tmp_path, name):
    backend = adapted(tmp_path, "TransformerEmbedding", SOUND[name])
    assert "assumed that the positions that pos_emb adds" in "\n".join(backend.assumed)
    assert not broken(backend, "embedding.scale")
    with pytest.raises(Unclear):
        adapted(tmp_path, "TransformerEmbedding", SOUND[name], strict=True)


@share(2)
@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("ids", "self.tok_emb(x) + self.pos_emb(x)", "(self.tok_emb(x) + self.pos_emb(x)) * 3.0"),
        ("ids", "self.tok_emb(x) +", "self.tok_emb(x) * self.d_model +"),
        ("rows", "return x + self.table", "return x * self.table"),
        ("rows", "return x + self.table", "return 2 * x + self.table"),
        (
            "rows",
            "self.pos_emb(self.tok_emb(x) * self.d_model**0.5)",
            "self.pos_emb(self.tok_emb(x)) * self.d_model**0.5",
        ),
        ("learned", "self.tok_emb(x) +", "self.tok_emb(x).flip(1) +"),
    ],
)
def test_mistakes_around_positions_are_detected_or_asked_about(tmp_path, name, old, new):
    own, clause = "TransformerEmbedding", "embedding.scale"
    assert asked_or_broken(tmp_path, own, SOUND[name], old, new, clause)
