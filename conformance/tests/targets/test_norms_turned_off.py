"""Attention with norms of queries and keys that a switch turns off."""

import torch
from torch import nn

import attentest


class CrossAttention(nn.Module):
    """Attention to a context, with norms that are made whatever the switch is."""

    def __init__(self, dim, heads, qk=False):
        super().__init__()
        if dim % heads:
            raise ValueError(f"{dim} is no multiple of {heads}")
        self.heads, self.qk = heads, qk
        self.to_q, self.to_k, self.to_v, self.to_out = (nn.Linear(dim, dim) for _ in "qkvo")
        self.norm_q, self.norm_k = nn.RMSNorm(dim, eps=1e-6), nn.RMSNorm(dim, eps=1e-6)

    def forward(self, x, context):
        """Return the mixed heads."""
        q, k, v = self.to_q(x), self.to_k(context), self.to_v(context)
        if self.qk:
            q, k = self.norm_q(q), self.norm_k(k)
        q, k, v = (one.unflatten(-1, (self.heads, -1)).transpose(1, 2) for one in (q, k, v))
        weights = torch.softmax(q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5, -1)
        return self.to_out((weights @ v).transpose(1, 2).flatten(2))


class NormedCrossAttention(CrossAttention):
    """One whose norms are on."""

    def __init__(self, dim, heads):
        super().__init__(dim, heads, qk=True)


SLUGS = ["multi_head_attention.formula", "multi_head_attention.query-key-norm"]


def test_norms_that_a_switch_turns_off_are_no_choice() -> None:
    backend = attentest.adapted(CrossAttention, "multi_head_attention")
    assert "query_key_norm" not in backend.choices
    assert attentest.check(CrossAttention, "multi_head_attention", clauses=SLUGS).conforms


def test_norms_that_are_on_are_a_choice() -> None:
    backend = attentest.adapted(NormedCrossAttention, "multi_head_attention")
    assert backend.choices["query_key_norm"] == "whole-projection"
    assert attentest.check(NormedCrossAttention, "multi_head_attention", clauses=SLUGS).conforms


def test_norms_that_are_off_are_unused_parameters() -> None:
    count = ["multi_head_attention.parameter-count"]
    assert not attentest.check(CrossAttention, "multi_head_attention", clauses=count).conforms
