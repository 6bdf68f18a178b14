"""Learned tables of positions that no gradient reaches."""

from pathlib import Path

from mistaken_code import adapted, broken, edited

CODE = """
import torch
from torch import nn


class LearnedPositionalEncoding(nn.Module):
    def __init__(self, d_model, max_len):
        super().__init__()
        self.table = nn.Embedding(max_len, d_model)

    def forward(self, x):
        rows = self.table(torch.arange(x.size(1), device=x.device))
        return x + rows
"""
TRAINED = "positional_encoding.not-trained"


def test_learned_table_that_is_detached_is_a_violation(tmp_path: Path) -> None:
    assert not broken(adapted(tmp_path, "LearnedPositionalEncoding", CODE), TRAINED)
    wrong = edited(CODE, ("x + rows", "x + rows.detach()"))
    (message,) = broken(adapted(tmp_path, "LearnedPositionalEncoding", wrong), TRAINED)
    assert "No gradient reaches" in message
