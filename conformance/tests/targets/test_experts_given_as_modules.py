"""Mixtures of experts that may get their experts as modules, and make them where they get none."""

import pytest
from mistaken_code import adapted, asked_or_broken, broken

MIXTURE = """
import torch
from torch import nn


class MoE(nn.Module):
    def __init__(self, dim, num_experts=4, hidden_dim=8, top_k=2, experts=None):
        super().__init__()
        made = (
            nn.Sequential(nn.Linear(dim, hidden_dim), nn.ReLU(), nn.Linear(hidden_dim, dim))
            for _ in range(num_experts)
        )
        self.experts = nn.ModuleList(made if experts is None else experts)
        self.gate = nn.Linear(dim, num_experts, bias=False)
        self.top_k = top_k

    def forward(self, x):
        shares, chosen = self.gate(x).softmax(dim=-1).topk(self.top_k, dim=-1)
        shares = shares / shares.sum(dim=-1, keepdim=True)
        out = torch.zeros_like(x)
        for number, expert in enumerate(self.experts):
            share = (shares * (chosen == number)).sum(dim=-1, keepdim=True)
            out = out + share * expert(x)
        return out
"""
FORMULA = "mixture_of_experts.formula"


def test_experts_that_are_made_where_none_are_given_conform(tmp_path):
    assert not broken(adapted(tmp_path, "MoE", MIXTURE), FORMULA)


@pytest.mark.proof
def test_mistake_in_such_a_mixture_is_detected_or_asked_about(tmp_path):
    right, wrong = "(shares * (chosen == number))", "(chosen == number)"
    assert asked_or_broken(tmp_path, "MoE", MIXTURE, right, wrong, FORMULA)
