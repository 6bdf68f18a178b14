"""Decoder-only models that take no labels, and return the loss of their own tokens by a switch."""

from pathlib import Path

import pytest
from mistaken_code import adapted, asked, broken, edited

CODE = """
import torch
from torch import nn
from torch.nn import functional


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.inputs, self.output = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.network = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )

    def forward(self, x):
        q, k, v = (
            one.unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for one in self.inputs(self.norm1(x)).chunk(3, -1)
        )
        mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.output(mixed.transpose(1, 2).flatten(2))
        return x + self.network(self.norm2(x))


class GPT(nn.Module):
    def __init__(self, vocab_size, width, heads, n_layers, max_length):
        super().__init__()
        self.tokens = nn.Embedding(vocab_size, width)
        self.places = nn.Embedding(max_length, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(n_layers))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocab_size, bias=False)

    def forward(self, x, return_loss=True):
        ids, labels = (x[:, :-1], x[:, 1:]) if return_loss else (x, None)
        h = self.tokens(ids) + self.places(torch.arange(ids.shape[1]))
        for block in self.blocks:
            h = block(h)
        logits = self.head(self.norm(h))
        if not return_loss:
            return logits
        return functional.cross_entropy(logits.flatten(0, 1), labels.flatten())
"""

OFF = ("return_loss=True", "return_loss=False")


def test_model_that_returns_its_loss_by_default_is_judged_by_its_logits(tmp_path: Path) -> None:
    backend = adapted(tmp_path, "GPT", CODE)
    assert any("assumed return_loss=False in every call" in one for one in backend.assumed)
    assert broken(backend, "language_model.formula", "language_model.causality") == []


@pytest.mark.proof
@pytest.mark.parametrize("edits", [(), (OFF,)])
def test_loss_in_which_each_token_predicts_itself_is_asked_about(
    tmp_path: Path, edits: tuple[tuple[str, str], ...]
) -> None:
    file = tmp_path / "own.py"
    file.write_text(edited(CODE, ("(x[:, :-1], x[:, 1:])", "(x, x)"), *edits))
    assert "each predicts itself" in asked(f"{file}:GPT")


@pytest.mark.proof
def test_mistake_behind_the_switch_does_not_conform(tmp_path: Path) -> None:
    mistake = ("return x + self.network", "return self.network")
    backend = adapted(tmp_path, "GPT", edited(CODE, mistake))
    assert broken(backend, "language_model.formula") != []
