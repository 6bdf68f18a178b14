"""Encodings whose settings hold a length by no known name, next to a size that is taken for one."""

from pathlib import Path

import pytest
from mistaken_code import adapted, broken, edited

CODE = """
import torch
from torch import nn


class Config:
    vocab_size: int = 50304
    n_embed: int = 512
    span: int = 128


class PositionalEncoding(nn.Module):
    def __init__(self, config):
        super().__init__()
        steps = torch.arange(0, config.span).double()[:, None]
        turns = 10000.0 ** (-torch.arange(0, config.n_embed, 2).double() / config.n_embed)
        table = torch.zeros(config.span, config.n_embed, dtype=torch.float64)
        table[:, 0::2], table[:, 1::2] = torch.sin(steps * turns), torch.cos(steps * turns)
        self.register_buffer("table", table)

    def forward(self, x):
        return self.table[: x.size(1)].unsqueeze(0)
"""
CLAUSES = ("positional_encoding.formula", "positional_encoding.far-positions")


def test_table_of_a_fixed_length_is_judged_up_to_that(tmp_path: Path) -> None:
    backend = adapted(tmp_path, "PositionalEncoding", CODE)
    assert backend.limits.length == 128
    assert not broken(backend, *CLAUSES)


@pytest.mark.parametrize("name", ["len_seq", "max_len"])
def test_length_by_a_known_name_is_no_limit(name: str, tmp_path: Path) -> None:
    backend = adapted(tmp_path, "PositionalEncoding", edited(CODE, ("span", name)))
    assert backend.limits.length is None
    assert not broken(backend, *CLAUSES)


def test_wrong_table_of_a_fixed_length_is_detected(tmp_path: Path) -> None:
    wrong = edited(CODE, ("torch.cos(steps * turns)", "torch.cos(steps / turns)"))
    assert broken(adapted(tmp_path, "PositionalEncoding", wrong), CLAUSES[0])
