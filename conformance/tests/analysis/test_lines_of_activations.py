"""Activations that are no option: the line names the nearest one, or none, and never a guess."""

from pathlib import Path

import pytest
from mistaken_code import adapted

from attentest.analysis.lines import cases
from attentest.analysis.lines.locate import locate
from attentest.judging.bench import Bench
from attentest.results.verdict import Location

CODE = """
import math

import torch
from torch import nn


class FeedForward(nn.Module):
    def __init__(self, d_model: int, d_ff: int):
        super().__init__()
        self.fc, self.proj = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)

    def forward(self, x):
        h = self.fc(x)
        h = ACTIVATED
        return self.proj(h)
"""
CUBED = "0.5 * h * (1.0 + torch.tanh(math.sqrt(2.0 / math.pi) * (h + 0.0947 * h**3)))"


def found(folder: Path, activated: str, **reading: object) -> Location:
    backend = adapted(folder, "FeedForward", CODE.replace("ACTIVATED", activated), **reading)
    subject = Bench(backend).subject()
    located = locate(subject, next(cases.own_cases(subject, "feed_forward")).steps, {})
    assert located is not None
    assert located.line == 15
    return located


def test_nearest_option_is_named_where_none_is_declared(tmp_path: Path) -> None:
    assert "of which gelu" in found(tmp_path, CUBED).expected


@pytest.mark.parametrize("activated", ["torch.cos(3 * h)", "h.round() * 0.7"])
def test_no_option_is_named_where_none_is_near(tmp_path: Path, activated: str) -> None:
    assert found(tmp_path, activated).expected == "an activation of the specification"


def test_declared_option_is_what_is_expected(tmp_path: Path) -> None:
    said = found(tmp_path, CUBED, choices={"activation": "gelu-tanh"})
    assert said.expected == "gelu-tanh(x W1 + b1)"
