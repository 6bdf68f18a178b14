"""Settings whose fields have the words of parts, and tables that take one length alone."""

from pathlib import Path

import pytest
from mistaken_code import adapted, broken

from attentest.targets.adapt import Unclear

pytestmark = pytest.mark.filterwarnings("ignore:enable_nested_tensor")

MODEL = """
import math
from typing import NamedTuple

import torch
from torch import nn


class Config(NamedTuple):
    src_vocab: int = 800
    tgt_vocab: int = 900
    embedding: int = 64
    n_heads: int = 4
    n_layers: int = 3
    hidden_ff: int = 128
    max_len: int = 100


class Embeddings(nn.Module):
    def __init__(self, cfg, vocab):
        super().__init__()
        self.tokens = nn.Embedding(vocab, cfg.embedding)
        self.positions = nn.Embedding(cfg.max_len, cfg.embedding)

    def forward(self, ids):
        places = torch.arange(ids.shape[1], device=ids.device)
        return self.tokens(ids) + self.positions(places)


class Transformer(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.src = Embeddings(cfg, cfg.src_vocab)
        self.tgt = Embeddings(cfg, cfg.tgt_vocab)
        self.body = nn.Transformer(
            cfg.embedding, cfg.n_heads, cfg.n_layers, cfg.n_layers, cfg.hidden_ff, batch_first=True
        )
        self.out = nn.Linear(cfg.embedding, cfg.tgt_vocab)

    def forward(self, src, tgt):
        later = torch.triu(torch.ones(tgt.shape[1], tgt.shape[1], dtype=torch.bool), 1)
        pads = src == 0
        x = self.body(
            self.src(src), self.tgt(tgt), tgt_mask=later,
            src_key_padding_mask=pads, memory_key_padding_mask=pads,
            tgt_key_padding_mask=tgt == 0,
        )
        return self.out(x)
"""
TABLE = """
import torch
from torch import nn


class BERTEmbedding(nn.Module):
    def __init__(self, vocab_size, n_segments, max_len, embed_dim):
        super().__init__()
        self.tokens = nn.Embedding(vocab_size, embed_dim)
        self.segments = nn.Embedding(n_segments, embed_dim)
        self.positions = nn.Embedding(max_len, embed_dim)
        self.places = torch.arange(max_len)

    def forward(self, seq, seg):
        return self.tokens(seq) + self.segments(seg) + self.positions(self.places)
"""


@pytest.mark.proof
def test_a_field_with_the_words_of_a_part_is_a_number_by_its_annotation(tmp_path: Path) -> None:
    backend = adapted(tmp_path, "Transformer", MODEL)
    assert not broken(backend, "model.formula", "model.parameter-gradient")


@pytest.mark.proof
def test_a_mistake_in_a_model_of_such_settings_is_detected(tmp_path: Path) -> None:
    source = MODEL.replace("dtype=torch.bool), 1)", "dtype=torch.bool), 2)")
    assert broken(adapted(tmp_path, "Transformer", source), "model.formula")


def test_a_table_of_positions_that_is_added_whole_is_a_question(tmp_path: Path) -> None:
    with pytest.raises(Unclear, match="takes sequences of its greatest length alone"):
        adapted(tmp_path, "BERTEmbedding", TABLE)
