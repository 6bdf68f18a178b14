"""Mistakes in decoder-only models that another reading would excuse, or that hide its question."""

from pathlib import Path

import pytest
from mistaken_code import adapted, asked_or_broken, broken, edited
from plain_gpt import PLAIN_GPT

from attentest.targets.adapt import Unclear

RMS = edited(
    PLAIN_GPT,
    (
        "class Block(nn.Module):",
        """class Norm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * self.weight


class Block(nn.Module):""",
    ),
    (
        "self.one, self.two = nn.LayerNorm(width), nn.LayerNorm(width)",
        "self.one, self.two = Norm(width), Norm(width)",
    ),
    ("self.norm, self.head = nn.LayerNorm(width)", "self.norm, self.head = Norm(width)"),
)

BODY = edited(
    PLAIN_GPT,
    (
        "self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocab_size)",
        "self.norm = nn.LayerNorm(width)",
    ),
    ("self.head(self.norm(self.blocks(x)))", "self.norm(self.blocks(x))"),
)


def test_rms_norms_with_a_weight_are_judged(tmp_path: Path) -> None:
    backend = adapted(tmp_path, "GPT", RMS)
    assert backend.choices["norm_kind"] == "rms"
    assert not broken(backend, "language_model.formula")


def test_weight_of_an_rms_norm_that_is_added_is_no_norm_with_a_bias_alone(tmp_path: Path) -> None:
    mistake = ("+ 1e-6) * self.weight", "+ 1e-6) + self.weight")
    assert asked_or_broken(tmp_path, "GPT", RMS, *mistake, "language_model.formula")


def test_body_that_returns_states_is_judged(tmp_path: Path) -> None:
    assert not broken(adapted(tmp_path, "GPT", BODY), "language_model.formula")


def test_question_about_a_mistaken_body_names_the_line(tmp_path: Path) -> None:
    wrong = edited(BODY, ("F.relu(self.up(self.two(x)))", "torch.tanh(self.up(self.two(x)))"))
    with pytest.raises(Unclear, match=r"model that returns states, .* begin at .*tanh") as asked:
        adapted(tmp_path, "GPT", wrong)
    assert "--as encoder judges the layers of GPT" in str(asked.value)
