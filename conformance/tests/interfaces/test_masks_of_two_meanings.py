"""A file that makes masks with one meaning of True and takes them with the other is a question."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from attentest.interfaces.cli.main import main

CODE = """
import torch


def subsequent_mask(size):
    return torch.ones(1, size, size).tril() == 1


def attention(query, key, value, mask=None):
    scores = query @ key.transpose(-2, -1) / query.shape[-1] ** 0.5
    if mask is not None:
        scores = scores.masked_fill(mask != 0, -1e9)
    return scores.softmax(-1) @ value
"""
CALL = "\n\ndef step(query, key, value, mask):\n    return attention(query, key, value, {})\n"


@pytest.mark.parametrize(
    ("call", "code", "words"),
    [
        ("mask", 3, "Masks have two meanings in this file"),
        ("mask == 0", 0, "assumed that masks are turned around on their way"),
    ],
)
def test_masks_of_two_meanings_are_asked_about_where_no_code_turns_them(
    call: str, code: int, words: str, tmp_path: Path
) -> None:
    file = tmp_path / "own.py"
    file.write_text(CODE + CALL.format(call))
    result = CliRunner().invoke(main, ["check", str(file)])
    assert result.exit_code == code, result.output
    assert words in " ".join(result.output.split())
