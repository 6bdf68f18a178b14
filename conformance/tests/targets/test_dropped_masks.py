"""Attention whose code masks its scores and drops the result is asked about."""

import pytest
import torch
from torch import Tensor, nn

import attentest
from attentest.targets.adapt import Unclear

CLAUSES = ["multi_head_attention.formula"]


class SelfAttention(nn.Module):
    """Attention that hides later positions, as is meant."""

    def __init__(self, d_model: int, num_heads: int) -> None:
        super().__init__()
        self.heads = num_heads
        self.packed = nn.Linear(d_model, 3 * d_model)
        self.out = nn.Linear(d_model, d_model)

    def hidden(self, scores: Tensor, later: Tensor) -> Tensor:
        return scores.masked_fill(later, float("-inf"))

    def forward(self, x: Tensor) -> Tensor:
        parts = self.packed(x).chunk(3, dim=-1)
        q, k, v = (one.unflatten(-1, (self.heads, -1)).transpose(1, 2) for one in parts)
        scores = q @ k.transpose(-1, -2) / k.shape[-1] ** 0.5
        later = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)
        weights = self.hidden(scores, later).softmax(-1)
        return self.out((weights @ v).transpose(1, 2).flatten(2))


class Dropping(SelfAttention):
    def hidden(self, scores: Tensor, later: Tensor) -> Tensor:
        scores.masked_fill(later, float("-inf"))
        return scores


class InPlace(SelfAttention):
    def hidden(self, scores: Tensor, later: Tensor) -> Tensor:
        scores.masked_fill_(later, float("-inf"))
        return scores


class Into(SelfAttention):
    def hidden(self, scores: Tensor, later: Tensor) -> Tensor:
        torch.where(later, torch.tensor(float("-inf")).to(scores), scores.clone(), out=scores)
        return scores


class Selected(SelfAttention):
    def hidden(self, scores: Tensor, later: Tensor) -> Tensor:
        torch.where(later, torch.tensor(float("-inf")).to(scores), scores)
        return scores


class Layered(nn.Module):
    """Attention whose heads are those of another class."""

    def __init__(self, d_model: int, num_heads: int) -> None:
        super().__init__()
        self.inner = Dropping(d_model, num_heads)

    def forward(self, x: Tensor) -> Tensor:
        return self.inner(x)


@pytest.mark.parametrize("thing", [SelfAttention, InPlace, Into])
def test_masked_scores_that_are_kept_are_judged(thing: type) -> None:
    assert attentest.check(thing, "multi_head_attention", clauses=CLAUSES).conforms


@pytest.mark.parametrize("thing", [Dropping, Selected, Layered])
def test_masked_scores_that_are_dropped_are_a_question(thing: type) -> None:
    named = r"test_dropped_masks.py:\d+ calls (masked_fill|where)"
    with pytest.raises(Unclear, match=named) as failure:
        attentest.adapted(thing, "multi_head_attention")
    said = str(failure.value)
    assert ("masked_fill_, which writes in place" in said) is ("masked_fill" in said)
    assert "where_" not in said
    backend = attentest.adapted(thing, "multi_head_attention", anyway=True)
    assert attentest.check(backend, clauses=CLAUSES).conforms
