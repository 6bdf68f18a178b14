"""Decoder-only models whose mask of padding leaves a token without keys where it comes first."""

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
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.inputs, self.output = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.network = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )

    def forward(self, x, attention_mask=None):
        length = x.shape[1]
        q, k, v = (
            one.unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for one in self.inputs(self.norm1(x)).chunk(3, -1)
        )
        scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
        later = torch.ones(length, length, dtype=torch.bool).triu(1)
        scores = scores.masked_fill(later, float("-inf"))
        if attention_mask is not None:
            hidden = attention_mask[:, None, None, :] == 0
            scores = scores.masked_fill(hidden, float("-inf"))
        x = x + self.output((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))
        return x + self.network(self.norm2(x))


class GPT(nn.Module):
    def __init__(self, vocab_size, width, heads, n_layers, max_length):
        super().__init__()
        self.tokens = nn.Embedding(vocab_size, width)
        self.places = nn.Embedding(max_length, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(n_layers))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocab_size, bias=False)

    def forward(self, input_ids, attention_mask=None):
        x = self.tokens(input_ids) + self.places(torch.arange(input_ids.shape[1]))
        for block in self.blocks:
            x = block(x, attention_mask)
        return self.head(self.norm(x))
"""

CLAUSES = [
    f"language_model.{one}"
    for one in ("formula", "right-padding", "left-padding", "causality", "padded-positions")
]


def test_mask_that_hides_all_keys_of_padding_is_judged_at_the_end(tmp_path: Path) -> None:
    backend = adapted(tmp_path, "GPT", CODE)
    assert any("padded at their end alone" in one for one in backend.assumed)
    assert "padding" in backend.limits.masks
    assert broken(backend, *CLAUSES) == []


@pytest.mark.proof
def test_strict_reading_asks_for_padding_on_the_left(tmp_path: Path) -> None:
    file = tmp_path / "own.py"
    file.write_text(CODE)
    assert "attention_mask" in asked(f"{file}:GPT", strict=True, choices=GPT2)


GPT2 = {
    "activation": "gelu",
    "block_norms": "pre",
    "final_norm": "present",
    "tying": "none",
    "positional_encoding": "learned",
    "embedding_scale": "none",
    "projection_bias": "present",
    "generator_bias": "none",
    "output": "logits",
}


@pytest.mark.proof
@pytest.mark.parametrize(
    "mistake",
    [
        ("[:, None, None, :] == 0", "[:, None, :, None] == 0"),
        ("[:, None, None, :] == 0", "[:, None, None, :].flip(-1) == 0"),
        ("[:, None, None, :] == 0", "[:, None, None, :].roll(1, -1) == 0"),
        ("scores = scores.masked_fill(hidden", "scores = (q @ k.mT).masked_fill(hidden"),
    ],
)
def test_mask_that_hides_other_keys_is_asked_about(
    tmp_path: Path, mistake: tuple[str, str]
) -> None:
    file = tmp_path / "own.py"
    file.write_text(edited(CODE, mistake))
    assert "attention_mask" in asked(f"{file}:GPT")
