"""Attention and feed-forward networks that get their linear maps as modules."""

from pathlib import Path

import pytest
from mistaken_code import adapted, asked_or_broken, broken, edited

from attentest.targets.adapt import Unclear

ATTENTION = """
import torch
from torch import nn
from torch.nn import functional


class Attention(nn.Module):
    def __init__(
        self,
        *,
        embed_dim: int,
        num_heads: int,
        num_kv_heads: int,
        head_dim: int,
        q_proj: nn.Module,
        k_proj: nn.Module,
        v_proj: nn.Module,
        output_proj: nn.Module,
    ) -> None:
        super().__init__()
        self.num_heads, self.num_kv_heads, self.head_dim = num_heads, num_kv_heads, head_dim
        self.q_proj, self.k_proj, self.v_proj = q_proj, k_proj, v_proj
        self.output_proj = output_proj

    def forward(self, x, y, *, mask=None):
        query = self.q_proj(x).unflatten(-1, (-1, self.head_dim)).transpose(1, 2)
        key = self.k_proj(y).unflatten(-1, (-1, self.head_dim)).transpose(1, 2)
        value = self.v_proj(y).unflatten(-1, (-1, self.head_dim)).transpose(1, 2)
        key, value = (
            one.repeat_interleave(self.num_heads // self.num_kv_heads, 1) for one in (key, value)
        )
        mask = None if mask is None else mask[:, None]
        mixed = functional.scaled_dot_product_attention(query, key, value, mask)
        return self.output_proj(mixed.transpose(1, 2).flatten(2))
"""

GATED = """
from torch import nn


class FeedForward(nn.Module):
    def __init__(self, *, gate_proj: nn.Module, down_proj: nn.Module, up_proj: nn.Module):
        super().__init__()
        self.gate_proj, self.down_proj, self.up_proj = gate_proj, down_proj, up_proj
        self.activation = nn.SiLU()

    def forward(self, x):
        return self.down_proj(self.activation(self.gate_proj(x)) * self.up_proj(x))
"""

PLAIN = """
from torch import nn


class FeedForward(nn.Module):
    def __init__(self, fc1: nn.Linear, fc2: nn.Linear):
        super().__init__()
        self.fc1, self.fc2 = fc1, fc2

    def forward(self, x):
        return self.fc2(self.fc1(x).relu())
"""

FORMULA = "multi_head_attention.formula"


def test_maps_of_attention_are_made(tmp_path: Path) -> None:
    found = adapted(tmp_path, "Attention", ATTENTION)
    assert not broken(found, FORMULA, "multi_head_attention.every-input-counts")
    assert "output_proj are linear maps" in " ".join(found.assumed)
    assert found.choices["key_heads"] == "fewer"


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("self.v_proj(y)", "self.k_proj(y)"),
        ("repeat_interleave(self.num_heads // self.num_kv_heads, 1)",
         "repeat(1, self.num_heads // self.num_kv_heads, 1, 1)"),
        ("mixed.transpose(1, 2).flatten(2)", "mixed.reshape(*x.shape)"),
        ("return self.output_proj(", "return ("),
    ],
)  # fmt: skip
def test_mistakes_beside_these_maps_are_found(tmp_path: Path, right: str, wrong: str) -> None:
    assert asked_or_broken(tmp_path, "Attention", ATTENTION, right, wrong, FORMULA)


@pytest.mark.parametrize("source", [GATED, PLAIN])
def test_maps_of_a_network_are_made(tmp_path: Path, source: str) -> None:
    assert not broken(adapted(tmp_path, "FeedForward", source), "feed_forward.formula")


def test_activation_of_the_wrong_map_is_found(tmp_path: Path) -> None:
    mistaken = edited(PLAIN, ("self.fc2(self.fc1(x).relu())", "self.fc2(self.fc1(x)).relu()"))
    assert broken(adapted(tmp_path, "FeedForward", mistaken), "feed_forward.formula")


def test_other_modules_are_asked_about(tmp_path: Path) -> None:
    other = edited(PLAIN, ("fc1: nn.Linear", "first: nn.Module"), ("= fc1, fc2", "= first, fc2"))
    with pytest.raises(Unclear, match="nothing says what first and fc2 are"):
        adapted(tmp_path, "FeedForward", other)
