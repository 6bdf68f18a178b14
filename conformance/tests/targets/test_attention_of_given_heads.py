"""Modules of attention without parameters that are built with a number of heads and need none."""

import pytest
from mistaken_code import adapted, broken, edited

ATTEND = """
import torch
from torch import nn


class Attend(nn.Module):
    def __init__(self, *, dropout=0.0, heads=None, scale=None, causal=False):
        super().__init__()
        self.scale, self.causal = scale, causal
        self.attn_dropout = nn.Dropout(dropout)

    def forward(self, q, k, v):
        scale = q.shape[-1] ** -0.5 if self.scale is None else self.scale
        sim = torch.einsum("bhid,bhjd->bhij", q, k) * scale
        if self.causal:
            i, j = sim.shape[-2:]
            later = torch.ones((i, j), dtype=torch.bool, device=q.device).triu(j - i + 1)
            sim = sim.masked_fill(later, -torch.finfo(sim.dtype).max)
        return torch.einsum("bhij,bhjd->bhid", self.attn_dropout(sim.softmax(dim=-1)), v)
"""


def test_attention_without_parameters_has_the_heads_of_its_inputs(tmp_path):
    assert not broken(adapted(tmp_path, "Attend", ATTEND), "attention.formula")


@pytest.mark.parametrize(
    ("right", "wrong"),
    [("q.shape[-1] ** -0.5", "q.shape[-2] ** -0.5"), ("softmax(dim=-1)", "softmax(dim=1)")],
)
def test_mistakes_in_such_attention_are_detected(tmp_path, right, wrong):
    mistaken = edited(ATTEND, (right, wrong))
    assert broken(adapted(tmp_path, "Attend", mistaken), "attention.formula")
