"""Positional encodings that are called with token ids, of which they take the length alone."""

from pathlib import Path
from typing import Any

import pytest
from asking import is_asked_or_fails
from user_files import write_files

import attentest
from attentest.targets.adapt import Unclear

SOUND = """
    import torch
    from torch import nn

    class PositionalEncoding(nn.Module):
        def __init__(self, d_model, max_len, device):
            super().__init__()
            at = torch.arange(max_len, dtype=torch.float64, device=device)[:, None]
            pair = torch.arange(0, d_model, 2, dtype=torch.float64, device=device)
            table = torch.zeros(max_len, d_model, dtype=torch.float64, device=device)
            table[:, 0::2] = torch.sin(at / 10000 ** (pair / d_model))
            table[:, 1::2] = torch.cos(at / 10000 ** (pair / d_model))
            self.register_buffer("encoding", table)

        def forward(self, x):
            batch_size, seq_len = x.size()
            return self.encoding[:seq_len, :]
"""
LEARNED = """
    from torch import nn
    import torch

    class PositionalEncoding(nn.Module):
        def __init__(self, seq_len, dim):
            super().__init__()
            self.dim = dim
            self.embedding = nn.Parameter(torch.randn(1, seq_len, dim))

        def forward(self, x):
            return x + self.embedding[:, : x.shape[1]] * self.dim**0.5
"""
CLAUSES = [f"positional_encoding.{one}" for one in ("formula", "pairs-on-circle")]


def checked(folder: Path, text: str) -> Any:
    target = str(write_files(folder, positions=text) / "positions.py:PositionalEncoding")
    return attentest.check(target, clauses=CLAUSES)


def test_a_table_for_token_ids_is_judged_and_conforms(tmp_path):
    report = checked(tmp_path, SOUND)
    assert report.conforms, str(report)
    assert report.compared == len(CLAUSES)
    said = "\n".join(report.inferred)
    assert "(B, L), token ids" in said
    assert "the encoding alone, which its caller adds to the input" in said


def test_a_trained_table_times_a_number_is_one_question(tmp_path):
    with pytest.raises(Unclear, match="its trained table times 3"):
        checked(tmp_path, LEARNED)
    report = checked(tmp_path, LEARNED.replace(" * self.dim**0.5", ""))
    assert report.conforms, str(report)
    report = checked(tmp_path, LEARNED.replace("* self.dim**0.5", ".flip(1)"))
    assert not report.conforms


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("1::2] = torch.cos", "1::2] = torch.sin"),
        ("self.encoding[:seq_len, :]", "self.encoding[1 : seq_len + 1, :]"),
        ("self.encoding[:seq_len, :]", "self.encoding[:batch_size, :].mean(0).expand(seq_len, -1)"),
        ("self.encoding[:seq_len, :]", "self.encoding[x]"),
    ],
)
def test_mistakes_in_such_tables_are_detected_or_asked_about(tmp_path, old, new):
    assert old in SOUND
    assert is_asked_or_fails(lambda: checked(tmp_path, SOUND.replace(old, new)))


OF_LENGTHS = SOUND.replace("forward(self, x)", "forward(self, seq_len, positions=None)").replace(
    "            batch_size, seq_len = x.size()\n", ""
)


def test_a_table_for_a_number_of_positions_is_judged_and_conforms(tmp_path):
    report = checked(tmp_path, OF_LENGTHS)
    assert report.conforms, str(report)
    assert report.compared == len(CLAUSES)
    assert "L, the number of positions" in "\n".join(report.inferred)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("1::2] = torch.cos", "1::2] = torch.sin"),
        ("self.encoding[:seq_len, :]", "self.encoding[1 : seq_len + 1, :]"),
        ("self.encoding[:seq_len, :]", "self.encoding[seq_len, :].expand(seq_len, -1)"),
    ],
)
def test_mistakes_in_tables_for_a_number_are_detected_or_asked_about(tmp_path, old, new):
    assert is_asked_or_fails(lambda: checked(tmp_path, OF_LENGTHS.replace(old, new)))


OF_TOKENS = """
    import torch
    from torch import nn

    class PositionalEncoding(nn.Module):
        def __init__(self, embedding_dim, padding_idx=0, init_size=64):
            super().__init__()
            self.padding_idx = padding_idx
            frequencies = 10000.0 ** (-torch.arange(0, embedding_dim, 2) / embedding_dim)
            angles = torch.arange(init_size)[:, None] * frequencies
            self.register_buffer("weights", torch.cat([angles.sin(), angles.cos()], dim=1))

        def forward(self, input):
            mask = input.ne(self.padding_idx).int()
            return self.weights[(mask.cumsum(dim=1) * mask).long() + self.padding_idx]
"""


def test_rows_for_token_ids_are_one_question(tmp_path):
    with pytest.raises(Unclear, match=r"takes whole numbers .* as input, and gives a row"):
        checked(tmp_path, OF_TOKENS)
