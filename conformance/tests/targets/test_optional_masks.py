"""Masks that a signature allows to leave out, and code that raises without them."""

from pathlib import Path

import pytest
from mistaken_code import adapted, asked_or_broken, broken
from proof import share

from attentest.judging.bench import Bench
from attentest.judging.judge import judge
from attentest.results.verdict import Status
from attentest.targets.adapt import Unclear

CODE = """
import math

import torch
from torch import nn


class TransformerBlock(nn.Module):
    def __init__(self, dim, n_heads, hidden_dim, dropout=0.1):
        super().__init__()
        self.n_heads = n_heads
        self.q_lin, self.k_lin = nn.Linear(dim, dim), nn.Linear(dim, dim)
        self.v_lin, self.out_lin = nn.Linear(dim, dim), nn.Linear(dim, dim)
        self.sa_layer_norm, self.output_layer_norm = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.lin1, self.lin2 = nn.Linear(dim, hidden_dim), nn.Linear(hidden_dim, dim)
        self.dropout = nn.Dropout(dropout)

    def attention(self, x, mask):
        assert 2 <= mask.dim() <= 3
        q, k, v = (
            one(x).unflatten(-1, (self.n_heads, -1)).transpose(1, 2)
            for one in (self.q_lin, self.k_lin, self.v_lin)
        )
        scores = q @ k.transpose(2, 3) / math.sqrt(q.size(-1))
        scores = scores.masked_fill((mask == 0)[:, None, None], -float("inf"))
        return self.out_lin((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))

    def forward(self, x, attn_mask=None):
        x = self.sa_layer_norm(x + self.dropout(self.attention(x, attn_mask)))
        return self.output_layer_norm(
            x + self.dropout(self.lin2(torch.relu(self.lin1(x))))
        )
"""

EXPERTS = """
import torch
from torch import nn


class Expert(nn.Module):
    def __init__(self, n_embd, intermediate_size):
        super().__init__()
        self.fc = nn.Linear(n_embd, intermediate_size)
        self.proj = nn.Linear(intermediate_size, n_embd)

    def forward(self, x):
        return self.proj(torch.relu(self.fc(x)))


class MoE(nn.Module):
    def __init__(self, n_embd, intermediate_size, n_expert, n_expert_per_token):
        super().__init__()
        self.gate = nn.Linear(n_embd, n_expert, bias=False)
        self.experts = nn.ModuleList(Expert(n_embd, intermediate_size) for _ in range(n_expert))
        self.chosen = n_expert_per_token

    def forward(self, x):
        values, places = self.gate(x).topk(self.chosen, dim=-1)
        values = values.softmax(-1)
        y = torch.zeros_like(x)
        for number, expert in enumerate(self.experts):
            y = y + (values * (places == number)).sum(-1, keepdim=True) * expert(x)
        return y
"""

ABSTRACT = """
from abc import ABC, abstractmethod

from torch import nn


class Scorer(nn.Module, ABC):
    @abstractmethod
    def forward(self, q, k, v):
        ...


class Scaled(Scorer):
    def __init__(self, dropout: float = 0.0):
        super().__init__()
        self.dropout = nn.Dropout(dropout)

    def forward(self, q, k, v):
        scores = q @ k.transpose(-1, -2) / q.size(-1) ** 0.5
        return self.dropout(scores.softmax(-1)) @ v


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model: int, heads: int, scorer: Scorer):
        super().__init__()
        self.heads, self.scorer = heads, scorer
        self.q, self.k = nn.Linear(d_model, d_model), nn.Linear(d_model, d_model)
        self.v, self.o = nn.Linear(d_model, d_model), nn.Linear(d_model, d_model)

    def forward(self, query, key, value):
        q, k, v = (
            one(x).unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for one, x in ((self.q, query), (self.k, key), (self.v, value))
        )
        return self.o(self.scorer(q, k, v).transpose(1, 2).flatten(2))
"""

LOSSES = """
from torch import nn
from torch.nn import functional as F


class Transformer(nn.Module):
    def __init__(self, dim, num_tokens, depth, seq_len, heads=8):
        super().__init__()
        self.token_emb, self.pos_emb = nn.Embedding(num_tokens, dim), nn.Embedding(seq_len, dim)
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(dim, heads, batch_first=True) for _ in range(depth)
        )
        self.to_logits = nn.Linear(dim, num_tokens)

    def forward(self, x, return_loss=True):
        x, labels = x[:, :-1], x[:, 1:]
        h = self.token_emb(x) + self.pos_emb.weight[: x.size(1)]
        for layer in self.layers:
            h = layer(h)
        return F.cross_entropy(self.to_logits(h).transpose(1, 2), labels)
"""

LAYER = (
    "encoder.layer-formula",
    "encoder.norm-placement",
    "encoder.order-of-sublayers",
    "encoder.separate-norms",
)


def test_mask_that_is_needed_is_given_and_assumed(tmp_path: Path) -> None:
    backend = adapted(tmp_path, "TransformerBlock", CODE)
    assert any("gives attn_mask: without" in one for one in backend.assumed), backend.assumed
    assert broken(backend, *LAYER) == []


@share(4, rest=1)
@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("/ math.sqrt(q.size(-1))", "/ math.sqrt(x.size(-1))"),
        ("scores.softmax(-1)", "scores.softmax(-2)"),
        ("x + self.dropout(self.attention(x, attn_mask))", "self.attention(x, attn_mask)"),
        ("(mask == 0)[:, None, None]", "(mask == 0)[:, None, :, None]"),
    ],
)
def test_mistake_in_code_that_needs_a_mask_does_not_pass(
    tmp_path: Path, right: str, wrong: str
) -> None:
    assert right in CODE
    try:
        backend = adapted(tmp_path, "TransformerBlock", CODE.replace(right, wrong))
    except Unclear:
        return
    verdict = judge(Bench.for_status(backend), LAYER[0])
    assert verdict.status is Status.VIOLATION


def test_experts_per_token_are_the_chosen_ones(tmp_path: Path) -> None:
    backend = adapted(tmp_path, "MoE", EXPERTS)
    assert broken(backend, "mixture_of_experts.formula") == []


@pytest.mark.proof
def test_mistake_in_experts_per_token_does_not_pass(tmp_path: Path) -> None:
    right, wrong = "values.softmax(-1)", "values.softmax(-2)"
    assert asked_or_broken(tmp_path, "MoE", EXPERTS, right, wrong, "mixture_of_experts.formula")


@pytest.mark.proof
def test_part_of_an_abstract_class_is_made_by_the_one_class_that_is_not(tmp_path: Path) -> None:
    backend = adapted(tmp_path, "MultiHeadAttention", ABSTRACT)
    assert broken(backend, "multi_head_attention.formula") == []
    right, wrong = "/ q.size(-1) ** 0.5", "/ q.size(-2) ** 0.5"
    clause = "multi_head_attention.formula"
    assert asked_or_broken(tmp_path, "MultiHeadAttention", ABSTRACT, right, wrong, clause)


def test_model_that_returns_a_loss_is_a_question(tmp_path: Path) -> None:
    with pytest.raises(Unclear):
        adapted(tmp_path, "Transformer", LOSSES)
