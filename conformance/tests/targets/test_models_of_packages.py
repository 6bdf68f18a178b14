"""Decoder-only models as packages have them: pad ids, given masks, switches of key heads."""

from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from mistaken_code import adapted, broken
from torch import nn

import attentest
from attentest.targets.language_models.numbers.constants import constants
from attentest.targets.single import widened

MODEL = """
import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, dim, heads, hidden_dim):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.qkv, self.out = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.up, self.down = nn.Linear(dim, hidden_dim), nn.Linear(hidden_dim, dim)

    def forward(self, x, mask):
        q, k, v = (
            one.unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for one in self.qkv(self.norm1(x)).chunk(3, dim=-1)
        )
        scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
        scores = scores.masked_fill(~mask, -torch.inf)
        x = x + self.out((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))
        return x + self.down(torch.relu(self.up(self.norm2(x))))


class TextGPT(nn.Module):
    def __init__(self, vocab_size, dim, heads, hidden_dim, n_layers, max_length):
        super().__init__()
        self.words = nn.Embedding(vocab_size, dim, padding_idx=1)
        self.places = nn.Embedding(max_length, dim)
        self.layers = nn.ModuleList(Block(dim, heads, hidden_dim) for _ in range(n_layers))
        self.last = nn.LayerNorm(dim)

    def forward(self, input_ids):
        size = input_ids.shape[1]
        mask = torch.ones(size, size, dtype=torch.bool).tril()
        x = self.words(input_ids) + self.places(torch.arange(size))
        for layer in self.layers:
            x = layer(x, mask)
        return self.last(x) @ self.words.weight.T
"""
ONE_HEAD = (
    MODEL.replace("n_layers, max_length", "n_layers, max_length, multi_query=True")
    .replace("Block(dim, heads, hidden_dim) for", "Block(dim, heads, hidden_dim, multi_query) for")
    .replace("(self, dim, heads, hidden_dim)", "(self, dim, heads, hidden_dim, multi_query)")
    .replace(
        "nn.Linear(dim, 3 * dim)",
        "nn.Linear(dim, dim + 2 * (dim // heads if multi_query else dim))",
    )
    .replace("self.heads = heads", "self.heads, self.single = heads, multi_query")
    .replace("        q, k, v = (\n", "        q, k, v = self.parts(x) if self.single else (\n")
    .replace(
        "    def forward(self, x, mask):",
        """    def parts(self, x):
        width = x.shape[-1] // self.heads
        q, k, v = self.qkv(self.norm1(x)).split((x.shape[-1], width, width), dim=-1)
        q = q.unflatten(-1, (self.heads, -1)).transpose(1, 2)
        return q, k[:, None], v[:, None]

    def forward(self, x, mask):""",
    )
)


@pytest.mark.proof
def test_row_of_a_pad_id_that_is_not_trained_is_no_violation(tmp_path: Path) -> None:
    backend = adapted(tmp_path, "TextGPT", MODEL)
    assert (backend.limits.trained_pad, backend.limits.pad) == (False, 1)
    assert not broken(backend, "language_model.gradient", "language_model.every-parameter-trained")


@pytest.mark.proof
def test_row_of_a_pad_id_is_not_trained_where_positions_are_given(tmp_path: Path) -> None:
    placed = MODEL.replace(
        "forward(self, input_ids)", "forward(self, input_ids, position_ids=None)"
    )
    placed = placed.replace(
        "self.places(torch.arange(size))",
        "self.places(torch.arange(size) if position_ids is None else position_ids)",
    )
    (tmp_path / "own.py").write_text(placed)
    target = f"{tmp_path / 'own.py'}:TextGPT"
    report = attentest.check(target, clauses=["language_model.gradient"])
    assert report.conforms, str(report)


@pytest.mark.proof
def test_gradient_that_is_stopped_elsewhere_is_a_violation(tmp_path: Path) -> None:
    wrong = MODEL.replace("x = x + self.out(", "x = x.detach() + self.out(")
    assert broken(adapted(tmp_path, "TextGPT", wrong), "language_model.gradient")


@pytest.mark.proof
def test_a_model_with_a_switch_for_one_head_of_keys_is_judged_either_way(tmp_path: Path) -> None:
    backend = adapted(tmp_path, "TextGPT", ONE_HEAD)
    assert backend.limits.one_key_head
    assert not broken(backend, "language_model.formula")
    backend = adapted(tmp_path, "TextGPT", ONE_HEAD, given={"multi_query": False})
    assert not backend.limits.one_key_head
    assert not broken(backend, "language_model.formula")


class Cube(torch.autograd.Function):
    """A function whose class and that of its gradient hold each other."""

    scale = 4321.0


def test_constants_of_a_file_with_a_function_of_autograd_are_found() -> None:
    assert 4321.0 in constants(nn.Linear(2, 2), Cube)


def test_constants_of_settings_are_found_in_their_dictionaries() -> None:
    model = nn.Linear(2, 2)
    model.config = SimpleNamespace(rope_parameters={"rope_theta": 7654321.0})
    assert 7654321.0 in constants(model, Cube)


SETTINGS = """
from dataclasses import dataclass

import torch
from torch import nn


@dataclass
class Config:
    hidden_size: int = 8
    num_heads: int = 1
    intermediate_size: int = 16

    def __post_init__(self):
        if self.hidden_size // self.num_heads % 2:
            raise ValueError("heads are turned, and their width is even")


class FeedForward(nn.Module):
    def __init__(self, config: Config):
        super().__init__()
        self.up = nn.Linear(config.hidden_size, config.intermediate_size)
        self.down = nn.Linear(config.intermediate_size, config.hidden_size)

    def forward(self, x):
        return self.down(torch.relu(self.up(x)))
"""


def test_network_whose_settings_refuse_odd_heads_is_judged_at_even_widths(tmp_path: Path) -> None:
    backend = adapted(tmp_path, "FeedForward", SETTINGS)
    assert not backend.limits.odd_width
    assert not broken(backend, "feed_forward.formula")
    plain = SETTINGS.replace("hidden_size // self.num_heads % 2", "hidden_size < 0")
    assert adapted(tmp_path, "FeedForward", plain).limits.odd_width


def test_products_of_groups_are_read_in_double_precision() -> None:
    rows, matrices = torch.randn(7, 3), torch.randn(2, 3, 4)
    ends = torch.tensor([5, 7], dtype=torch.int32)
    with widened():
        found = torch.nn.functional.grouped_mm(rows.double(), matrices.double(), offs=ends)
    expected = torch.cat([rows[:5] @ matrices[0], rows[5:] @ matrices[1]])
    torch.testing.assert_close(found.float(), expected)
