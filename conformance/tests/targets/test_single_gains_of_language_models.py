"""Decoder-only models whose norms train one number for all columns."""

from pathlib import Path

import pytest
from mistaken_code import adapted, asked_or_broken, broken, edited
from plain_gpt import PLAIN_GPT

import attentest
from attentest.targets.adapt import Unclear

FORMULA = "language_model.formula"
NORM = """class Norm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.gain = nn.Parameter(torch.ones(1))

    def forward(self, x):
        return self.gain * x / (x.square().mean(-1, keepdim=True) + 1e-5).sqrt()


class Block"""
SINGLE = edited(PLAIN_GPT, ("nn.LayerNorm(width)", "Norm(width)"), ("class Block", NORM))
SAID = "assumed that norms that train one number for all columns, as Norm does, are meant"


def test_single_gains_are_those_of_all_columns(tmp_path: Path) -> None:
    backend = adapted(tmp_path, "GPT", SINGLE)
    assert any(one.startswith(SAID) for one in backend.assumed)  # type: ignore[attr-defined]
    assert not broken(backend, FORMULA)


@pytest.mark.proof
def test_written_adapter_of_single_gains_conforms(tmp_path: Path) -> None:
    backend = adapted(tmp_path, "GPT", SINGLE)
    (tmp_path / "written.py").write_text(backend.written())  # type: ignore[attr-defined]
    assert not broken(attentest.adapted(str(tmp_path / "written.py:backend")), FORMULA)


@pytest.mark.proof
def test_mistakes_next_to_single_gains_are_no_pass(tmp_path: Path) -> None:
    assert asked_or_broken(tmp_path, "GPT", SINGLE, ".triu(1)", ".triu(2)", FORMULA)


def test_rows_of_another_length_are_a_question(tmp_path: Path) -> None:
    source = edited(SINGLE, ("x.square().mean(-1", "x.square().sum(-1"))
    with pytest.raises(Unclear):
        adapted(tmp_path, "GPT", source)
