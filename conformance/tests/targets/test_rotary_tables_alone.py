"""Classes that make cosines and sines, in files without a function that takes these."""

from pathlib import Path

import pytest
from mistaken_code import adapted, asked, asked_or_broken, broken, edited

HALVES = """
import torch
from torch import nn


class Rotary(nn.Module):
    def __init__(self, dim, theta=10000.0):
        super().__init__()
        inv = 1.0 / (theta ** (torch.arange(0, dim, 2).float() / dim))
        self.register_buffer("inv_freq", inv, persistent=False)

    def forward(self, x, position_ids):
        f = position_ids[:, :, None].float() * self.inv_freq[None, None, :]
        emb = torch.cat((f, f), dim=-1)
        return emb.cos().to(x.dtype), emb.sin().to(x.dtype)
"""

ADJACENT = ("torch.cat((f, f), dim=-1)", "f.repeat_interleave(2, dim=-1)")

CACHED = edited(
    HALVES,
    ("def forward(self, x, position_ids)", "def forward(self, seq_len)"),
    (
        "position_ids[:, :, None]",
        "torch.arange(seq_len, device=self.inv_freq.device)[None, :, None]",
    ),
    (".to(x.dtype)", "[:, None]"),
)


@pytest.mark.parametrize(
    ("source", "pairs"),
    [(HALVES, "halves"), (edited(HALVES, ADJACENT), "adjacent"), (CACHED, "halves")],
    ids=["halves", "adjacent", "by-length"],
)
def test_tables_are_judged_by_the_pairs_of_their_columns(
    tmp_path: Path, source: str, pairs: str
) -> None:
    backend = adapted(tmp_path, "Rotary", source)
    assert backend.choices["rotary_pairs"] == pairs
    assert any("it makes tables alone" in one for one in backend.understood)
    assert broken(backend, "rotary.formula", "rotary.follows-moves", "rotary.first-position") == []


@pytest.mark.parametrize(
    "wrong",
    [
        ("position_ids[:, :, None]", "(position_ids + 1)[:, :, None]"),
        ("/ dim)", "/ (dim + 2))"),
        ("emb.sin()", "emb.cos()"),
    ],
    ids=["positions-from-1", "exponent", "no-sine"],
)
def test_wrong_tables_are_a_violation_or_a_question(tmp_path: Path, wrong: tuple[str, str]) -> None:
    assert asked_or_broken(tmp_path, "Rotary", HALVES, *wrong, "rotary.formula")


def test_tables_of_half_the_columns_are_asked_about(tmp_path: Path) -> None:
    source = edited(HALVES, ("torch.cat((f, f), dim=-1)", "f"))
    file = tmp_path / "own.py"
    file.write_text(source)
    assert "no way of calling" in asked(f"{file}:Rotary")
