"""Bodies of decoder-only models that return states, and hide later tokens as their caller says."""

from pathlib import Path

import pytest
from mistaken_code import adapted, broken, edited

from attentest.targets.adapt import Unclear

CODE = """
import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.inputs, self.output = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.network = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )

    def forward(self, x, mask):
        q, k, v = (
            one.unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for one in self.inputs(x).chunk(3, -1)
        )
        scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
        if mask is not None:
            scores = scores.masked_fill(~mask, float("-inf"))
        x = self.norm1(x + self.output((scores.softmax(-1) @ v).transpose(1, 2).flatten(2)))
        return self.norm2(x + self.network(x))


class GPT(nn.Module):
    def __init__(self, vocab_size, width, heads, n_layers, max_length):
        super().__init__()
        self.tokens = nn.Embedding(vocab_size, width)
        self.places = nn.Embedding(max_length, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(n_layers))

    def forward(self, ids, mask=None):
        x = self.tokens(ids) + self.places(torch.arange(ids.shape[1]))
        for block in self.blocks:
            x = block(x, mask)
        return x
"""


def test_states_under_a_mask_of_the_caller_are_judged(tmp_path: Path) -> None:
    backend = adapted(tmp_path, "GPT", CODE)
    assert any("every call gets a mask of later tokens as mask" in one for one in backend.assumed)
    assert any("are states" in one for one in backend.assumed)
    assert broken(backend, "language_model.formula", "language_model.causality") == []


@pytest.mark.proof
@pytest.mark.parametrize(
    "mistake",
    [
        ("self.norm2(x + self.network(x))", "self.norm2(self.network(x))"),
        ("q.shape[-1] ** 0.5", "q.shape[-1]"),
        (".softmax(-1)", ".softmax(-2)"),
        ("x = block(x, mask)", "x = block(x, None)"),
        ("self.norm2(x + ", "self.norm1(x + "),
    ],
)
def test_mistake_in_states_under_a_mask_does_not_pass(
    tmp_path: Path, mistake: tuple[str, str]
) -> None:
    try:
        backend = adapted(tmp_path, "GPT", edited(CODE, mistake))
    except Unclear:
        return
    assert broken(backend, "language_model.formula") != []
