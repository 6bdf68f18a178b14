"""Attention with a fused kernel where no key is hidden, and a path of its own where one is."""

import pytest
from mistaken_code import adapted, asked_or_broken, broken, edited

ATTENTION = """
import math

import torch
from torch import nn
from torch.nn import functional as F


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, heads):
        super().__init__()
        self.heads, self.width = heads, d_model // heads
        self.q_proj, self.k_proj = nn.Linear(d_model, d_model), nn.Linear(d_model, d_model)
        self.v_proj, self.o_proj = nn.Linear(d_model, d_model), nn.Linear(d_model, d_model)

    def split(self, x):
        return x.view(*x.shape[:2], self.heads, self.width).transpose(1, 2)

    def forward(self, x, attention_mask=None):
        q, k, v = self.split(self.q_proj(x)), self.split(self.k_proj(x)), self.split(self.v_proj(x))
        if attention_mask is None or torch.all(attention_mask == 1):
            mixed = F.scaled_dot_product_attention(q, k, v)
        else:
            scores = q @ k.transpose(-2, -1) / math.sqrt(self.width)
            scores = scores + (1.0 - attention_mask[:, None, None]) * -1e9
            mixed = F.softmax(scores.float(), dim=-1).type_as(q) @ v
        return self.o_proj(mixed.transpose(1, 2).flatten(2))
"""
CLAUSES = "multi_head_attention.formula", "multi_head_attention.masked-keys-ignored"


def test_softmax_in_float32_of_the_path_for_masks_is_no_mistake(tmp_path):
    backend = adapted(tmp_path, "MultiHeadAttention", ATTENTION)
    assert backend.limits.finest == "float32"
    assert broken(backend, *CLAUSES) == []


def test_path_for_masks_in_the_precision_of_its_input_is_judged_in_double(tmp_path):
    code = edited(ATTENTION, ("scores.float()", "scores"))
    backend = adapted(tmp_path, "MultiHeadAttention", code)
    assert backend.limits.finest == "float64"
    assert broken(backend, *CLAUSES) == []


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        (" / math.sqrt(self.width)", ""),
        ("(1.0 - attention_mask[:, None, None])", "attention_mask[:, None, None]"),
    ],
)
def test_mistake_of_the_path_for_masks_is_no_pass(tmp_path, right, wrong):
    assert asked_or_broken(tmp_path, "MultiHeadAttention", ATTENTION, right, wrong, *CLAUSES)
