"""Attention and layers that need the positions of their tokens, and a base without a default."""

import math

import pytest
import torch
from torch import nn

import attentest
from attentest.targets.adapt.reading import Unclear


class Rotary(nn.Module):
    """Turns pairs of neighbouring columns by tables."""

    def __init__(self, theta, d_k, length):
        super().__init__()
        frequencies = 1.0 / theta ** (torch.arange(0, d_k, 2).float() / d_k)
        angles = torch.outer(torch.arange(length).float(), frequencies)
        self.register_buffer("cos", angles.cos(), persistent=False)
        self.register_buffer("sin", angles.sin(), persistent=False)

    def forward(self, x, positions):
        """Turn x (.., L, E) by its positions."""
        cos, sin = self.cos[positions], self.sin[positions]
        one, two = x[..., 0::2], x[..., 1::2]
        return torch.stack([one * cos - two * sin, one * sin + two * cos], dim=-1).flatten(-2)


class MultiHeadSelfAttention(nn.Module):
    """Causal self-attention that is given the positions."""

    def __init__(self, d_model, num_heads, max_seq_len, theta):
        super().__init__()
        assert d_model % num_heads == 0, f"{d_model} is no multiple of {num_heads}"
        self.heads = num_heads
        projections = (nn.Linear(d_model, d_model, bias=False) for _ in "qkvo")
        self.q_proj, self.k_proj, self.v_proj, self.o_proj = projections
        self.rope = Rotary(theta, d_model // num_heads, max_seq_len)

    def turned(self, q, k, v, positions):
        """Return queries and keys turned, and values as they are."""
        return self.rope(q, positions), self.rope(k, positions), v

    def forward(self, in_features, token_positions):
        """Return the mixed heads of (B, L, D)."""
        size = in_features.shape
        q, k, v = (
            one(in_features).view(*size[:2], self.heads, -1).transpose(1, 2)
            for one in (self.q_proj, self.k_proj, self.v_proj)
        )
        q, k, v = self.turned(q, k, v, token_positions)
        scores = q @ k.transpose(-1, -2) / math.sqrt(q.size(-1))
        later = torch.triu(torch.ones(scores.shape[-2:], dtype=torch.bool, device=q.device), 1)
        mixed = scores.masked_fill(later, -math.inf).softmax(-1) @ v
        return self.o_proj(mixed.transpose(1, 2).reshape(size))


class PerSampleMultiHeadSelfAttention(MultiHeadSelfAttention):
    """One that takes the positions of each sample."""

    def turned(self, q, k, v, positions):
        """Return queries and keys turned by positions (B, L)."""
        return super().turned(q, k, v, positions.unsqueeze(1))


class TurnedValuesMultiHeadSelfAttention(MultiHeadSelfAttention):
    """One that turns keys and values."""

    def turned(self, q, k, v, positions):
        """Return keys and values turned."""
        return q, self.rope(k, positions), self.rope(v, positions)


class UnplacedMultiHeadSelfAttention(MultiHeadSelfAttention):
    """One that needs something else."""

    def forward(self, in_features, lookup):
        """Return the mixed heads."""
        return super().forward(in_features, lookup)


SLUGS = ["multi_head_attention.formula"]


@pytest.mark.proof
@pytest.mark.parametrize("attention", [MultiHeadSelfAttention, PerSampleMultiHeadSelfAttention])
def test_attention_that_needs_positions_is_given_those_of_its_rows(attention: type) -> None:
    backend = attentest.adapted(attention, "multi_head_attention")
    assert backend.choices["attention_rotary"] == "query-and-key"
    assert attentest.check(attention, "multi_head_attention", clauses=SLUGS).conforms


def test_turned_values_are_a_violation() -> None:
    report = attentest.check(
        TurnedValuesMultiHeadSelfAttention, "multi_head_attention", clauses=SLUGS
    )
    assert not report.conforms


def test_an_argument_of_another_name_is_asked_about() -> None:
    with pytest.raises(Unclear, match="lookup"):
        attentest.adapted(UnplacedMultiHeadSelfAttention, "multi_head_attention")
