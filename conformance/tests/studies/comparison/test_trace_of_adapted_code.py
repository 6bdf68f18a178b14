"""`attentest trace` on code whose adapter is inferred: it agrees with what `check` says."""

import pytest
from mistaken_code import adapted, edited
from torch import nn

from attentest.studies.comparison import EXAMPLES, compare, follow

ROTARY = """
import torch
from torch import nn

class Rotary(nn.Module):
    def __init__(self, dim, base=10000):
        super().__init__()
        steps = torch.arange(0, dim, 2, dtype=torch.float32)
        self.register_buffer("speeds", 1.0 / base ** (steps / dim), persistent=False)

    def forward(self, x):
        angles = torch.outer(torch.arange(x.shape[-2], dtype=torch.float32), self.speeds)
        angles = torch.cat([angles, angles], dim=-1)
        first, second = x.chunk(2, dim=-1)
        return x * angles.cos() + torch.cat([-second, first], dim=-1) * angles.sin()
"""

TABLE = """
import math
import torch
from torch import nn

class PositionalEncoding(nn.Module):
    def __init__(self, d_model, max_len=5000):
        super().__init__()
        table = torch.zeros(max_len, d_model)
        places = torch.arange(max_len).float()[:, None]
        speeds = torch.exp(torch.arange(0, d_model, 2).float() * (-math.log(10000.0) / d_model))
        table[:, 0::2] = torch.sin(places * speeds)
        table[:, 1::2] = torch.cos(places * speeds)
        self.register_buffer("table", table)

    def forward(self, x):
        return x + self.table[: x.shape[1]]
"""

BLOCK = """
import torch
from torch import nn

class Block(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(d_model), nn.LayerNorm(d_model)
        self.attention = nn.MultiheadAttention(d_model, n_heads, batch_first=True)
        self.ff = nn.Sequential(
            nn.Linear(d_model, 4 * d_model), nn.ReLU(), nn.Linear(4 * d_model, d_model)
        )

    def forward(self, x):
        later = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool, device=x.device).triu(1)
        h = self.norm1(x)
        x = x + self.attention(h, h, h, attn_mask=later, need_weights=False)[0]
        return x + self.ff(self.norm2(x))
"""

SINGLE = """
import torch.nn.functional as F
from torch import nn

class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff):
        super().__init__()
        self.inner, self.outer = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)

    def forward(self, x):
        return self.outer(F.relu(self.inner(x)).float().to(x.dtype))
"""

BY_POWERS = edited(
    TABLE, ("torch.exp(", "10000.0 ** ("), ("-math.log(10000.0) / d_model", "-1 / d_model")
)

NAMES = {
    SINGLE: "FeedForward",
    ROTARY: "Rotary",
    TABLE: "PositionalEncoding",
    BY_POWERS: "PositionalEncoding",
}


@pytest.mark.parametrize("code", [ROTARY, TABLE, BY_POWERS, SINGLE, BLOCK])
def test_correct_code_is_equal_to_the_reference(code, tmp_path):
    backend = adapted(tmp_path, NAMES.get(code, "Block"), code)
    for example in ("small", "text"):
        assert follow(backend, EXAMPLES[example]).parting.step == ""


@pytest.mark.parametrize(
    ("code", "right", "wrong"),
    [
        (ROTARY, "base ** (", "base ** (1.0001 * "),
        (SINGLE, "F.relu(self.inner(x))", "F.relu(self.inner(1.0001 * x))"),
        (TABLE, "places * speeds", "places * (1 + 1e-5) * speeds"),
    ],
)
def test_a_mistake_is_not_taken_for_rounding(code, right, wrong, tmp_path):
    mistaken = edited(code, (right, wrong))
    backend = adapted(tmp_path, NAMES.get(code, "Block"), mistaken, anyway=True)
    assert follow(backend, EXAMPLES["text"]).parting.step


def test_numbers_in_single_precision_are_noted_and_explained(tmp_path):
    backend = adapted(tmp_path, "FeedForward", SINGLE)
    found = compare("paper activation=gelu", backend)
    assert any("those of float32" in note for note in found.notes)
    assert [flip.choice for flip in found.explanations[0].options] == ["activation"]


def test_parts_that_cannot_be_watched_are_left_out():
    found = follow(nn.TransformerEncoder)
    assert [row.step for row in found.rows if row.output is not None] == ["encoder: result"]
    assert found.parting.step == ""
