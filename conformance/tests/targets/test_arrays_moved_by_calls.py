"""Whole models that hold a table of positions as a plain attribute, and move it in each call."""

from pathlib import Path

import pytest
from mistaken_code import adapted, broken
from proof import share

CLAUSE = "model.device-move"
CODE = """
import math

import torch
from torch import nn


class Positions(nn.Module):
    def __init__(self, d_model, max_len):
        super().__init__()
        angles = torch.arange(max_len)[:, None] * torch.exp(
            torch.arange(0, d_model, 2) * (-math.log(10000.0) / d_model)
        )
        table = torch.zeros(max_len, d_model)
        table[:, 0::2] = torch.sin(angles)
        table[:, 1::2] = torch.cos(angles[:, : d_model // 2])
        self.table = table

    def forward(self, x):
        self.table = self.table.to(x)
        return x + self.table[: x.size(1)]


class Seq2Seq(nn.Module):
    def __init__(
        self, src_vocab, tgt_vocab, d_model, n_heads, n_layers, d_ff, max_len, dropout=0.1
    ):
        super().__init__()
        self.d_model = d_model
        self.src_embed = nn.Embedding(src_vocab, d_model)
        self.tgt_embed = nn.Embedding(tgt_vocab, d_model)
        self.positions = Positions(d_model, max_len)
        sizes = (d_model, n_heads, d_ff, dropout)
        self.encoder = nn.TransformerEncoder(
            nn.TransformerEncoderLayer(*sizes, batch_first=True),
            n_layers,
            enable_nested_tensor=False,
        )
        self.decoder = nn.TransformerDecoder(
            nn.TransformerDecoderLayer(*sizes, batch_first=True), n_layers
        )
        self.generator = nn.Linear(d_model, tgt_vocab)

    def embed(self, table, tokens):
        return self.positions(table(tokens) * math.sqrt(self.d_model))

    def forward(self, src, tgt):
        padding = src == 0
        memory = self.encoder(self.embed(self.src_embed, src), src_key_padding_mask=padding)
        later = torch.ones(tgt.size(1), tgt.size(1), dtype=torch.bool, device=tgt.device).triu(1)
        hidden = self.decoder(
            self.embed(self.tgt_embed, tgt),
            memory,
            tgt_mask=later,
            tgt_is_causal=False,
            tgt_key_padding_mask=tgt == 0,
            memory_key_padding_mask=padding,
        )
        return self.generator(hidden)
"""
MOVED = "self.table = self.table.to(x)"
READING = "assert int(src.max()) >= 0\n        padding = src == 0"


@pytest.mark.proof
@share(2)
@pytest.mark.parametrize(
    "moving",
    [
        MOVED,
        "table = self.table.to(x)\n        return x + table[: x.size(1)]",
        "table = self.table.to(x.dtype)\n        table = table.cuda() if x.is_cuda else table\n"
        "        return x + table[: x.size(1)]",
    ],
)
def test_table_that_each_call_moves_is_not_left_behind(tmp_path: Path, moving: str) -> None:
    backend = adapted(tmp_path, "Seq2Seq", CODE.replace(MOVED, moving))
    assert broken(backend, CLAUSE) == []


@share(2)
@pytest.mark.parametrize(("moving", "moved"), [(MOVED, True), ("pass", False)])
def test_calls_that_read_numbers_are_judged_too(tmp_path: Path, moving: str, moved: bool) -> None:
    code = CODE.replace("padding = src == 0", READING).replace(MOVED, moving)
    assert READING in code
    assert (broken(adapted(tmp_path, "Seq2Seq", code), CLAUSE) == []) is moved


@pytest.mark.proof
@share(3)
@pytest.mark.parametrize(
    "staying",
    [
        "pass",
        "self.table = self.table.to(x.dtype)",
        "return x + torch.eye(x.size(1), len(self.table)) @ self.table",
    ],
)
def test_table_that_no_call_moves_is_a_violation(tmp_path: Path, staying: str) -> None:
    backend = adapted(tmp_path, "Seq2Seq", CODE.replace(MOVED, staying))
    assert broken(backend, CLAUSE)


@share(2)
@pytest.mark.parametrize(("root", "left"), [("torch.tensor(1.0 * d)", 0), ("torch.ones(1) * d", 1)])
def test_number_without_axes_is_not_left_behind(tmp_path: Path, root: str, left: int) -> None:
    code = CODE.replace(
        "self.d_model = d_model", f"d = d_model\n        self.root = ({root}).sqrt()"
    )
    code = code.replace("math.sqrt(self.d_model)", "self.root")
    assert len(broken(adapted(tmp_path, "Seq2Seq", code), CLAUSE)) == left
