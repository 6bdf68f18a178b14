"""Attention that refuses keys of another shape than its queries, and code that fails at them."""

import math

import pytest
import torch
from torch import nn

import attentest


class ScaledDotProductAttention(nn.Module):
    """Attention within one sequence, whatever its heads are."""

    def check(self, q, k, v):
        """Refuse another sequence."""
        assert q.shape == k.shape == v.shape

    def forward(self, q, k, v):
        """Return the attended values."""
        self.check(q, k, v)
        weights = torch.softmax(self.scores(q, k), dim=-1)
        return weights @ v, weights

    def scores(self, q, k):
        """Return the scaled scores."""
        return q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))


class UnscaledDotProductAttention(ScaledDotProductAttention):
    """One without the scale."""

    def scores(self, q, k):
        """Return scores."""
        return q @ k.transpose(-2, -1)


class MultiHeadAttention(nn.Module):
    """Heads that attend within one sequence."""

    def __init__(self, d_model, heads):
        super().__init__()
        if d_model % heads:
            raise ValueError(f"{d_model} is no multiple of {heads}")
        self.heads = heads
        self.query, self.key, self.value, self.out = (nn.Linear(d_model, d_model) for _ in "qkvo")
        self.attention = ScaledDotProductAttention()

    def forward(self, query, key, value):
        """Return the mixed heads."""
        size = query.size(1)
        q, k, v = self.query(query), self.key(key), self.value(value)
        q, k, v = (
            self.split(one, other)
            for one, other in zip((q, k, v), (query, key, value), strict=True)
        )
        mixed, _ = self.attention(q, k, v)
        return self.out(mixed.transpose(1, 2).reshape(len(query), size, -1))

    def split(self, x, rows):
        """Divide the columns among the heads."""
        return x.view(len(x), rows.size(1), self.heads, -1).transpose(1, 2)


class OpenMultiHeadAttention(MultiHeadAttention):
    """One that attends to any keys."""

    def __init__(self, d_model, heads):
        super().__init__(d_model, heads)
        self.attention.check = lambda q, k, v: None


class MistakenMultiHeadAttention(OpenMultiHeadAttention):
    """One that views the keys with the number of queries, which fails for other keys."""

    def forward(self, query, key, value):
        """Return the mixed heads."""
        q, k, v = self.query(query), self.key(key), self.value(value)
        q, k, v = (self.split(one, query) for one in (q, k, v))
        mixed, _ = self.attention(q, k, v)
        return self.out(mixed.transpose(1, 2).reshape(query.shape))


SLUGS = ["attention.formula", "attention.cross-lengths", "attention.gradient-finite"]
OF_HEADS = ["multi_head_attention.formula", "multi_head_attention.cross-lengths"]


@pytest.mark.proof
def test_attention_that_refuses_other_keys_is_judged_within_one_sequence() -> None:
    backend = attentest.adapted(ScaledDotProductAttention)
    assert backend.limits.one_shape
    assert any("assert q.shape == k.shape == v.shape" in one for one in backend.assumed)
    assert attentest.check(ScaledDotProductAttention, clauses=SLUGS).conforms


def test_a_mistake_of_attention_within_one_sequence_is_a_violation() -> None:
    report = attentest.check(UnscaledDotProductAttention, "attention", clauses=SLUGS[:1])
    assert not report.conforms


def test_heads_that_refuse_other_keys_are_judged_within_one_sequence() -> None:
    assert not attentest.adapted(MultiHeadAttention).limits.cross
    assert attentest.check(MultiHeadAttention, clauses=OF_HEADS).conforms


def test_heads_that_take_other_keys_are_judged_with_them() -> None:
    backend = attentest.adapted(OpenMultiHeadAttention, "multi_head_attention")
    assert backend.limits.cross


def test_an_error_of_an_operation_is_no_refusal() -> None:
    report = attentest.check(
        MistakenMultiHeadAttention, "multi_head_attention", clauses=OF_HEADS[1:]
    )
    assert not report.conforms


def test_a_strict_reading_assumes_no_single_sequence() -> None:
    assert not attentest.adapted(ScaledDotProductAttention, strict=True).limits.one_shape
