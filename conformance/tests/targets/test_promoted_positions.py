"""Positions in float32 that no move reaches: added to a half precision they give float32."""

from pathlib import Path
from typing import Any

import pytest
from mistaken_code import adapted, edited

from attentest.judging.bench import Bench
from attentest.judging.judge import judge

CODE = """
import torch
from torch import nn


class PositionalEncoding(nn.Module):
    def __init__(self, num_hiddens, max_len=1000):
        super().__init__()
        self.P = torch.zeros((1, max_len, num_hiddens))
        X = torch.arange(max_len, dtype=torch.float32).reshape(-1, 1) / torch.pow(
            10000, torch.arange(0, num_hiddens, 2, dtype=torch.float32) / num_hiddens)
        self.P[:, :, 0::2] = torch.sin(X)
        self.P[:, :, 1::2] = torch.cos(X)

    def forward(self, X):
        return X + self.P[:, :X.shape[1], :].to(X.device)
"""
CLAUSE = "positional_encoding.half-precision"


def read_with(folder: Path, *edits: tuple[str, str], **settled: object) -> Any:
    """Return the positions with `edits`, as a backend."""
    return adapted(folder, "PositionalEncoding", edited(CODE, *edits), **settled)


def status(backend: Any) -> str:
    """Return the status of the clause on half precision."""
    return judge(Bench.for_status(backend, effort=0.2), CLAUSE).status.value


def test_promoted_sums_are_an_assumption(tmp_path: Path) -> None:
    read = read_with(tmp_path)
    assert "float16" not in read.limits.precisions
    assert "given bfloat16 or float16, it returns float32" in "\n".join(read.assumed)
    assert status(read) == "absent"


def test_strict_judges_promoted_sums(tmp_path: Path) -> None:
    assert status(read_with(tmp_path, strict=True)) == "violation"


BUFFER = "self.register_buffer('P', torch.zeros((1, max_len, num_hiddens)))"


@pytest.mark.parametrize(
    "edit",
    [
        (".to(X.device)", ".to(X)"),
        ("self.P = torch.zeros((1, max_len, num_hiddens))", BUFFER),
    ],
    ids=["cast", "buffer"],
)
def test_sums_in_half_precision_are_judged(edit: tuple[str, str], tmp_path: Path) -> None:
    assert status(read_with(tmp_path, edit)) == "pass"


def test_angles_in_half_precision_are_a_violation(tmp_path: Path) -> None:
    read = read_with(tmp_path, ("self.P[:, :X.shape[1], :].to(X.device)", COMPUTED))
    assert status(read) == "violation"


COMPUTED = """torch.stack([f(
            torch.arange(X.shape[1]).to(X)[:, None]
            / 10000 ** (torch.arange(0, X.shape[2], 2) / X.shape[2]).to(X)
        ) for f in (torch.sin, torch.cos)], -1).flatten(-2)"""
