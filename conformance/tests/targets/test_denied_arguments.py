"""Arguments that name an option of a choice, in code that follows it and in code that does not."""

from pathlib import Path

import pytest
from mistaken_code import broken

import attentest
from attentest_spec import CHOICES

PARTS = """
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn


class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff, dropout=0.1, activation="gelu"):
        super().__init__()
        self.fc1, self.fc2 = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)
        self.dropout = nn.Dropout(dropout)
        self.act = {"relu": F.relu, "gelu": F.gelu}[activation]

    def forward(self, x):
        return self.fc2(self.dropout(self.act(self.fc1(x))))


class BareFeedForward(nn.Module):
    def __init__(self, d_model, d_ff, act=nn.SiLU, bias=False):
        super().__init__()
        self.fc1 = nn.Linear(d_model, d_ff, bias=bias)
        self.fc2 = nn.Linear(d_ff, d_model, bias=bias)
        self.act = act()

    def forward(self, x):
        return self.fc2(self.act(self.fc1(x)))


@dataclass
class Config:
    hidden_size: int = 16
    intermediate_size: int = 32
    hidden_act: str = "gelu"


class MLP(nn.Module):
    def __init__(self, config: Config):
        super().__init__()
        self.fc1 = nn.Linear(config.hidden_size, config.intermediate_size)
        self.fc2 = nn.Linear(config.intermediate_size, config.hidden_size)
        self.act = getattr(F, config.hidden_act)

    def forward(self, x):
        return self.fc2(self.act(self.fc1(x)))


class EncoderLayer(nn.Module):
    def __init__(self, d_model, n_heads, d_ff, dropout=0.1, norm_first=True):
        super().__init__()
        self.attn = nn.MultiheadAttention(d_model, n_heads, dropout=dropout, batch_first=True)
        self.fc1, self.fc2 = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)
        self.norm1, self.norm2 = nn.LayerNorm(d_model), nn.LayerNorm(d_model)
        self.dropout = nn.Dropout(dropout)
        self.norm_first = norm_first

    def attend(self, x):
        return self.dropout(self.attn(x, x, x, need_weights=False)[0])

    def feed(self, x):
        return self.dropout(self.fc2(self.dropout(F.relu(self.fc1(x)))))

    def forward(self, x):
        if self.norm_first:
            x = x + self.attend(self.norm1(x))
            return x + self.feed(self.norm2(x))
        x = self.norm1(x + self.attend(x))
        return self.norm2(x + self.feed(x))
"""


def _denied(folder: Path, name: str, source: str = PARTS, **reading: object) -> list[str]:
    file = folder / "parts.py"
    file.write_text(source)
    said = attentest.adapted(f"{file}:{name}", **reading).understood
    return [one for one in said if "though the argument" in one]


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("FeedForward", {}),
        ("FeedForward", {"activation": "relu"}),
        ("BareFeedForward", {}),
        ("MLP", {}),
        ("EncoderLayer", {}),
        ("EncoderLayer", {"norm_first": False}),
    ],
)
def test_nothing_is_said_of_an_argument_that_is_followed(
    tmp_path: Path, name: str, given: dict[str, object]
) -> None:
    assert _denied(tmp_path, name, given=given) == []


@pytest.mark.parametrize(
    ("name", "right", "wrong", "said"),
    [
        (
            "FeedForward",
            "self.act(self",
            "F.relu(self",
            "activation=relu, activation is gelu, gelu",
        ),
        ("BareFeedForward", "act()", "nn.ReLU()", "activation=relu, act is SiLU, silu"),
        (
            "BareFeedForward",
            ", bias=bias",
            "",
            "feed_forward_bias=present, bias is False, none",
        ),
        (
            "MLP",
            "getattr(F, config.hidden_act)",
            "F.relu",
            "activation=relu, config.hidden_act is gelu, gelu",
        ),
        (
            "EncoderLayer",
            "self.norm_first = norm_first",
            "self.norm_first = False",
            "norm_placement=post, norm_first is True, pre",
        ),
    ],
)
def test_an_argument_that_the_numbers_deny_is_said_with_the_option_to_declare(
    tmp_path: Path, name: str, right: str, wrong: str, said: str
) -> None:
    assert right in PARTS
    (one,) = _denied(tmp_path, name, PARTS.replace(right, wrong))
    found, argument, option = said.split(", ")
    assert one.startswith(f"assumed {found}, as measured, though the argument {argument}:")
    choice, _, _ = found.partition("=")
    assert f"--choice {choice}={option}" in one
    backend = attentest.adapted(f"{tmp_path / 'parts.py'}:{name}", choices={choice: option})
    assert broken(backend, CHOICES[choice].clause)
