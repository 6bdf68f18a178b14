"""Files that read the arguments of their program get none, as a file that is run alone."""

import subprocess
import sys
from pathlib import Path

import pytest
from mistaken_code import adapted, broken

SETTINGS = """
import argparse

parser = argparse.ArgumentParser()
parser.add_argument("--slope", type=float, default=1.0)
{0}
"""
AT_IMPORT, AT_BUILD = "args = parser.parse_args()", "read = parser.parse_args"
NETWORK = """
import torch
from torch import nn

import settings


class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff):
        super().__init__()
        self.slope = {0}.slope
        self.up, self.down = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)

    def forward(self, x):
        return self.slope * self.down(torch.relu(self.up(x)))
"""


def written(folder: Path, settings: str, read: str) -> str:
    (folder / "settings.py").write_text(SETTINGS.format(settings))
    return NETWORK.format(read)


def test_arguments_of_this_program_are_no_arguments_of_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["pytest", "--no-such-option", "7"])
    code = written(tmp_path, AT_IMPORT, "settings.args")
    assert broken(adapted(tmp_path, "FeedForward", code), "feed_forward.formula") == []
    assert sys.argv == ["pytest", "--no-such-option", "7"]


def test_arguments_that_are_read_when_a_part_is_built_are_none_either(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(written(tmp_path, AT_BUILD, "settings.read()"))
    command = [sys.executable, "-m", "attentest", "check", "own.py:FeedForward"]
    found = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "judged clauses conform" in " ".join(found.stdout.split()), found.stdout
