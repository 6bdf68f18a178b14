"""Decoder-only models that cannot do without the positions of their tokens, or refuse them."""

from pathlib import Path

import pytest
from mistaken_code import adapted, asked_or_broken, broken, edited

from attentest.targets.whole import AdaptedWhole

SOURCE = """
import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, n_embd, n_head):
        super().__init__()
        self.first, self.second = nn.LayerNorm(n_embd), nn.LayerNorm(n_embd)
        self.mix = nn.MultiheadAttention(n_embd, n_head, batch_first=True)
        self.net = nn.Sequential(
            nn.Linear(n_embd, 4 * n_embd), nn.ReLU(), nn.Linear(4 * n_embd, n_embd)
        )

    def forward(self, x, hidden):
        y = self.first(x)
        x = x + self.mix(y, y, y, attn_mask=hidden, need_weights=False)[0]
        return x + self.net(self.second(x))


class GPT(nn.Module):
    def __init__(self, vocab_size, n_embd, n_head, n_layer, block_size):
        super().__init__()
        self.tokens = nn.Embedding(vocab_size, n_embd)
        self.places = nn.Embedding(block_size, n_embd)
        self.blocks = nn.ModuleList(Block(n_embd, n_head) for _ in range(n_layer))
        self.norm = nn.LayerNorm(n_embd)
        self.head = nn.Linear(n_embd, vocab_size, bias=False)

    def forward(self, ids, input_pos):
        hidden = torch.ones(2 * ids.shape[1:], dtype=torch.bool).triu(1)
        x = self.tokens(ids) + self.places(input_pos)
        for block in self.blocks:
            x = block(x, hidden)
        return self.head(self.norm(x))
"""
FORMULA = "language_model.formula"
REFUSES = edited(
    SOURCE,
    ("ids, input_pos):", "ids, position_ids=None):\n        self.check(position_ids)"),
    ("self.places(input_pos)", "self.places(torch.arange(ids.shape[1]))"),
    (
        "    def forward(self, ids,",
        "    def check(self, position_ids):\n        if position_ids is not None:\n"
        '            raise ValueError("only next to a cache")\n\n    def forward(self, ids,',
    ),
)


@pytest.mark.proof
def test_positions_that_must_be_given_are_given(tmp_path: Path) -> None:
    backend = adapted(tmp_path, "GPT", SOURCE)
    assert isinstance(backend, AdaptedWhole)
    assert "positions=input_pos" in backend.summary
    assert broken(backend, FORMULA, "language_model.gradient") == []


@pytest.mark.proof
@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("self.places(input_pos)", "self.places(input_pos.flip(-1))"),
        ("triu(1)", "triu(2)"),
        ("self.head(self.norm(x))", "self.head(x)"),
    ],
)
def test_mistake_next_to_positions_is_no_pass(tmp_path: Path, right: str, wrong: str) -> None:
    assert asked_or_broken(tmp_path, "GPT", SOURCE, right, wrong, FORMULA)


@pytest.mark.proof
def test_positions_that_a_whole_text_refuses_are_left_out(tmp_path: Path) -> None:
    backend = adapted(tmp_path, "GPT", REFUSES)
    assert isinstance(backend, AdaptedWhole)
    assert "position_ids is left out: positions of a whole text are refused" in backend.assumed
    assert broken(backend, FORMULA) == []
