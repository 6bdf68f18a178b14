"""Encodings whose width is a constant of the code are judged at even widths alone."""

from pathlib import Path

import pytest
from mistaken_code import adapted, broken, edited

from attentest.judging.bench import Bench
from attentest.judging.judge import judge
from attentest.results.verdict import Status
from attentest.targets.adapt import Unclear
from attentest_spec import Backend

FORMULA = "positional_encoding.formula"
CONSTANT = """
import torch
from torch import nn

d_model = 64


class PositionalEncoding(nn.Module):
    def __init__(self, max_len=100):
        super().__init__()
        half = d_model // 2
        place = torch.arange(max_len, dtype=torch.float64)[:, None]
        angles = place / 10000 ** (2 * torch.arange(half, dtype=torch.float64) / d_model)
        table = torch.zeros(max_len, d_model, dtype=torch.float64)
        table[:, 0 : 2 * half : 2] = angles.sin()
        table[:, 1 : 2 * half : 2] = angles.cos()
        self.register_buffer("table", table, persistent=False)

    def forward(self, x):
        return x + self.table[: x.shape[1]].to(x.dtype)
"""


def read(folder: Path, *edits: tuple[str, str]) -> Backend:
    return adapted(folder, "PositionalEncoding", edited(CONSTANT, *edits))


def test_width_that_is_a_constant_is_even(tmp_path: Path) -> None:
    backend = read(tmp_path)
    assert not backend.limits.odd_width
    assert not broken(backend, FORMULA)


def test_width_that_is_an_argument_may_be_odd(tmp_path: Path) -> None:
    edits = ("d_model = 64\n", ""), ("self, max_len", "self, d_model, max_len")
    backend = read(tmp_path, *edits)
    assert backend.limits.odd_width
    assert judge(Bench(backend), FORMULA).status is Status.VIOLATION


@pytest.mark.parametrize(("right", "wrong"), [("10000", "1000"), ("angles.cos()", "angles.sin()")])
def test_mistakes_at_even_widths_are_asked_about(tmp_path: Path, right: str, wrong: str) -> None:
    with pytest.raises(Unclear, match="that is a mistake in it, or a constant means something"):
        read(tmp_path, (right, wrong))
