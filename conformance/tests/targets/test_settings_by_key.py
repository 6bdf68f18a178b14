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


def test_key_that_nothing_says_is_a_size_by_the_numbers(tmp_path: Path) -> None:
    folder = write_files(tmp_path, mlp=MLP, others=OTHERS)
    found = attentest.adapted(f"{folder / 'mlp.py'}:MLP")
    assert [one for one in found.assumed if "assumed ff as d_ff, which nothing says" in one]


def test_question_is_about_the_keys_that_nothing_says(tmp_path: Path) -> None:
    code = MLP.replace('config["dim"]', 'config["a"]').replace('config["ff"]', 'config["b"]')
    wrong = code.replace("torch.relu(", "torch.sin(")
    folder = write_files(tmp_path, mlp=wrong, others=OTHERS)
    with pytest.raises(Unclear, match="nothing says what a is"):
        attentest.adapted(f"{folder / 'mlp.py'}:MLP")


@pytest.mark.parametrize("name", ["config_dict", "hyper"])
def test_argument_that_is_read_by_keys_gets_settings(name: str, tmp_path: Path) -> None:
    code = MLP.replace("config", name).replace('"ff"', '"d_ff"')
    folder = write_files(tmp_path, mlp=code)
    assert "MLP" in attentest.adapted(f"{folder / 'mlp.py'}:MLP").summary


POSITIONS = """
import math

import torch
from torch import nn


class PositionalEncoding(nn.Module):
    def __init__(self, config):
        super().__init__()
        rate = torch.exp(torch.arange(0, config["dim"], 2) * (-math.log(10000.0) / config["dim"]))
        angles = torch.arange(config["length"])[:, None] * rate
        table = torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1)
        self.register_buffer("table", table)

    def forward(self, x):
        return x + self.table[: x.size(1)]
"""


def test_key_that_may_be_the_longest_text_is_tried_as_that(tmp_path: Path) -> None:
    folder = write_files(tmp_path, positions=POSITIONS)
    found = attentest.adapted(f"{folder / 'positions.py'}:PositionalEncoding")
    assert [one for one in found.assumed if "assumed length as max_length, which" in one]
