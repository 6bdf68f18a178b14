"""Mixtures of experts that keep each map of their experts in a list of its own."""

import pytest
from mistaken_code import adapted, asked_or_broken, broken, edited

MIXTURE = """
import torch
from torch import nn
from torch.nn import functional as F


class SparseMoE(nn.Module):
    def __init__(self, dim, hidden, num_experts=4, top_k=2):
        super().__init__()
        self.top_k = top_k
        self.router = nn.Linear(dim, num_experts, bias=False)
        self.w1 = nn.ModuleList(nn.Linear(dim, hidden, bias=False) for _ in range(num_experts))
        self.w3 = nn.ModuleList(nn.Linear(dim, hidden, bias=False) for _ in range(num_experts))
        self.w2 = nn.ModuleList(nn.Linear(hidden, dim, bias=False) for _ in range(num_experts))

    def forward(self, x):
        logits, chosen = self.router(x).topk(self.top_k, dim=-1)
        shares = logits.softmax(dim=-1)
        out = torch.zeros_like(x)
        for number, (up, gate, down) in enumerate(zip(self.w1, self.w3, self.w2)):
            share = (shares * (chosen == number)).sum(dim=-1, keepdim=True)
            out = out + share * down(F.silu(up(x)) * gate(x))
        return out
"""
WITHOUT_GATE = (
    (
        "        self.w3 = nn.ModuleList(nn.Linear(dim, hidden, bias=False) "
        "for _ in range(num_experts))\n",
        "",
    ),
    (
        "(up, gate, down) in enumerate(zip(self.w1, self.w3, self.w2))",
        "(up, down) in enumerate(zip(self.w1, self.w2))",
    ),
    ("F.silu(up(x)) * gate(x)", "F.relu(up(x))"),
)
FORMULA = "mixture_of_experts.formula"


@pytest.mark.parametrize("edits", [(), WITHOUT_GATE])
def test_lists_of_maps_are_those_of_experts(tmp_path, edits):
    backend = adapted(tmp_path, "SparseMoE", edited(MIXTURE, *edits))
    assert broken(backend, FORMULA, "mixture_of_experts.chosen-alone") == []


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("zip(self.w1, self.w3, self.w2)", "zip(self.w1, self.w3, reversed(self.w2))"),
        ("F.silu(up(x)) * gate(x)", "F.silu(up(x) * gate(x))"),
        ("(shares * (chosen == number))", "(chosen == number)"),
    ],
)
def test_mistake_in_lists_of_maps_is_no_pass(tmp_path, right, wrong):
    assert asked_or_broken(tmp_path, "SparseMoE", MIXTURE, right, wrong, FORMULA)
