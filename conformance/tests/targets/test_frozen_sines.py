"""Tables of sines that are frozen parameters, and embeddings that add positions themselves."""

from pathlib import Path

import pytest
from mistaken_code import adapted, asked, asked_or_broken, broken, edited

from attentest.targets.adapt import Unclear

CODE = """
import math

import torch
from torch import nn


def table(max_len, d_model):
    rows = torch.zeros(max_len, d_model)
    position = torch.arange(max_len)[:, None].float()
    rates = torch.exp(torch.arange(0, d_model, 2).float() * -(math.log(10000.0) / d_model))
    rows[:, 0::2] = torch.sin(position * rates)
    rows[:, 1::2] = torch.cos(position * rates)[:, : d_model // 2]
    return rows


class PositionalEncoding(nn.Module):
    def __init__(self, d_model, max_len):
        super().__init__()
        self.pe = nn.Parameter(table(max_len, d_model), requires_grad=False)

    def forward(self, x):
        return x + self.pe[: x.shape[1]]


class InputEmbedding(nn.Module):
    def __init__(self, vocab_size, d_model, max_len):
        super().__init__()
        self.emb = nn.Embedding(vocab_size, d_model)
        self.pe = nn.Parameter(table(max_len, d_model), requires_grad=False)

    def forward(self, tokens):
        return self.emb(tokens) + self.pe[: tokens.shape[1]]
"""
SLUGS = ("positional_encoding.formula", "positional_encoding.not-trained")


def test_frozen_sines_are_constants(tmp_path: Path) -> None:
    assert broken(adapted(tmp_path, "PositionalEncoding", CODE), *SLUGS) == []


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("nn.Parameter(table(max_len, d_model)", "nn.Parameter(torch.randn(max_len, d_model)"),
        ("torch.cos(position * rates)", "torch.sin(position * rates)"),
        ("self.pe[: x.shape[1]]", "self.pe[: x.shape[0]].mean(0)"),
    ],
)
def test_other_tables_are_caught(tmp_path: Path, right: str, wrong: str) -> None:
    code = CODE[: CODE.index("class InputEmbedding")]
    assert asked_or_broken(tmp_path, "PositionalEncoding", code, right, wrong, *SLUGS)


def test_embedding_that_adds_positions_itself_is_one_question(tmp_path: Path) -> None:
    with pytest.raises(Unclear, match="depends on the position alone"):
        adapted(tmp_path, "InputEmbedding", CODE)


@pytest.mark.parametrize("wrong", ["self.emb(tokens).flip(1)", "self.emb(tokens).cumsum(1)"])
def test_other_sums_of_an_embedding_are_caught(tmp_path: Path, wrong: str) -> None:
    right = "self.emb(tokens) + self.pe[: tokens.shape[1]]"
    assert asked_or_broken(tmp_path, "InputEmbedding", CODE, right, wrong, "embedding.lookup")


def test_frozen_tables_that_are_computed_are_no_learned_ones(tmp_path: Path) -> None:
    code = CODE[: CODE.index("class InputEmbedding")]
    wrong = code.replace("-(math.log(10000.0) / d_model)", "-(math.log(10000.0) * 0.7 / d_model)")
    assert wrong != code
    backend = adapted(tmp_path, "PositionalEncoding", wrong)
    assert broken(backend, "positional_encoding.formula")
    assert not broken(backend, "positional_encoding.not-trained")


FILLED_BY_OTHERS = """
import torch
from torch import nn


class SinusoidalPositions(nn.Embedding):
    def __init__(self, max_len, d_model):
        super().__init__(max_len, d_model, _freeze=True)

    def make_table(self):
        places = torch.arange(self.num_embeddings)[:, None]
        angles = places / 10000 ** (torch.arange(0, self.embedding_dim, 2) / self.embedding_dim)
        return torch.cat([angles.sin(), angles.cos()], dim=1)

    def forward(self, tokens):
        return super().forward(torch.arange(tokens.shape[1]))
"""
READ_BY_THE_CONSTRUCTOR = (
    "super().__init__(max_len, d_model, _freeze=True)",
    "super().__init__(max_len, d_model, _freeze=True)\n"
    "        self.weight.data = self.make_table()",
)


def test_frozen_table_that_other_code_fills_is_a_question(tmp_path: Path) -> None:
    text = asked(write(tmp_path, FILLED_BY_OTHERS))
    assert "its constructor does not fill" in text
    assert "make_table" in text


def test_frozen_table_that_the_constructor_fills_is_judged(tmp_path: Path) -> None:
    code = edited(FILLED_BY_OTHERS, READ_BY_THE_CONSTRUCTOR)
    assert broken(adapted(tmp_path, "SinusoidalPositions", code), *SLUGS) == []


def test_frozen_table_of_random_numbers_is_a_violation(tmp_path: Path) -> None:
    start = FILLED_BY_OTHERS.index("    def make_table")
    code = FILLED_BY_OTHERS[:start] + FILLED_BY_OTHERS[FILLED_BY_OTHERS.index("    def forward") :]
    assert broken(adapted(tmp_path, "SinusoidalPositions", code), SLUGS[1])


def write(folder: Path, code: str) -> str:
    (folder / "own.py").write_text(code)
    return f"{folder / 'own.py'}:SinusoidalPositions"
