"""Settings that are read by key: no class of settings of another file is taken for them."""

from pathlib import Path

import pytest
from user_files import write_files

import attentest
from attentest.targets.adapt import Unclear

MLP = """
import torch
from torch import nn


class MLP(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.up = nn.Linear(config["dim"], config["ff"])
        self.down = nn.Linear(config["ff"], config["dim"])

    def forward(self, x):
        return self.down(torch.relu(self.up(x)))
"""
OTHERS = """
from dataclasses import dataclass


@dataclass
class BertConfig:
    hidden: int = 8


@dataclass
class LlamaConfig:
    hidden: int = 8
"""


def test_question_is_about_the_key_that_nothing_says(tmp_path: Path) -> None:
    folder = write_files(tmp_path, mlp=MLP, others=OTHERS)
    with pytest.raises(Unclear, match="nothing says what ff is"):
        attentest.adapted(f"{folder / 'mlp.py'}:MLP")
    attentest.adapted(f"{folder / 'mlp.py'}:MLP", arguments={"d_ff": "ff"})
