"""Decoder-only models with a head that the specification does not have: their layers are judged."""

from pathlib import Path
from typing import Any

import pytest
from proof import share

import attentest
from attentest.targets.adapt import Unclear

SOURCE = """
import math

import torch
from torch import nn


class Layer(nn.Module):
    def __init__(self, width, heads, inner):
        super().__init__()
        self.heads = heads
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.query, self.key = nn.Linear(width, width), nn.Linear(width, width)
        self.value, self.output = nn.Linear(width, width), nn.Linear(width, width)
        self.wide, self.narrow = nn.Linear(width, inner), nn.Linear(inner, width)

    def attend(self, x, keep):
        q, k, v = (
            one(x).unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for one in (self.query, self.key, self.value)
        )
        scores = q @ k.mT / math.sqrt(q.shape[-1])
        weights = scores.masked_fill(~keep, -1e9).softmax(-1)
        return self.output((weights @ v).transpose(1, 2).flatten(2))

    def forward(self, x, keep):
        x = self.first(x + self.attend(x, keep))
        return self.second(x + self.narrow(self.wide(x).relu()))


class TextConfig:
    def __init__(
        self, vocab_size=90, hidden_size=12, num_attention_heads=3, num_hidden_layers=2,
        intermediate_size=20, max_position_embeddings=32, is_decoder=False,
    ):
        self.vocab_size, self.hidden_size = vocab_size, hidden_size
        self.num_attention_heads, self.num_hidden_layers = num_attention_heads, num_hidden_layers
        self.intermediate_size, self.is_decoder = intermediate_size, is_decoder
        self.max_position_embeddings = max_position_embeddings


class TextForCausalLM(nn.Module):
    def __init__(self, config: TextConfig):
        super().__init__()
        width, self.is_decoder = config.hidden_size, config.is_decoder
        self.tokens = nn.Embedding(config.vocab_size, width)
        self.places = nn.Embedding(config.max_position_embeddings, width)
        self.kinds, self.norm = nn.Embedding(2, width), nn.LayerNorm(width)
        self.layers = nn.ModuleList(
            Layer(width, config.num_attention_heads, config.intermediate_size)
            for _ in range(config.num_hidden_layers)
        )
        self.dense, self.after = nn.Linear(width, width), nn.LayerNorm(width)
        self.logits = nn.Linear(width, config.vocab_size)

    def forward(self, input_ids):
        steps = torch.arange(input_ids.shape[1])
        x = self.tokens(input_ids) + self.places(steps) + self.kinds.weight[0]
        x = self.norm(x)
        keep = torch.ones(len(steps), len(steps), dtype=torch.bool)
        keep = keep.tril() if self.is_decoder else keep
        for layer in self.layers:
            x = layer(x, keep)
        return self.logits(self.after(self.dense(x).relu()))
"""


def adapted(folder: Path, right: str = "", wrong: str = "") -> Any:
    """Return the backend of the model, with `wrong` for `right`."""
    assert right in SOURCE
    path = folder / "own.py"
    path.write_text(SOURCE.replace(right, wrong) if right else SOURCE, encoding="utf-8")
    return attentest.adapted(f"{path}:TextForCausalLM")


@pytest.mark.proof
def test_layers_of_a_model_with_a_head_of_its_own_are_judged(tmp_path: Path) -> None:
    made = adapted(tmp_path)
    assert made.components == ("encoder",)
    said = "\n".join(made.assumed)
    assert "assumed that the head of TextForCausalLM is meant: between its layers" in said
    assert "it has dense" in said
    assert "with is_decoder=True, as its name says" in said
    assert made.fits


@share(3, rest=1)
@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("keep.tril()", "keep.tril(1)"),
        pytest.param("/ math.sqrt(q.shape[-1])", "/ q.shape[-1]", marks=pytest.mark.proof),
        ("+ self.places(steps) +", "* self.places(steps) +"),
        ("self.dense(x).relu()", "x"),
    ],
)
def test_mistaken_models_with_a_head_of_their_own_are_asked_about(
    right: str, wrong: str, tmp_path: Path
) -> None:
    try:
        assert not adapted(tmp_path, right, wrong).fits
    except Unclear:
        return
