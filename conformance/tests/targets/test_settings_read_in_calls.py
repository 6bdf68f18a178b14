"""Optional settings of a part, without which its call fails: they are made with their defaults."""

import pytest
from mistaken_code import adapted, asked_or_broken, broken, edited

ATTENTION = """
from typing import Optional

import torch
from torch import nn
from torch.nn import functional as F


class BlockConfig:
    def __init__(self, vocab_size=500, d_model=64, num_heads=4, kernel="plain", **extra):
        self.vocab_size, self.d_model, self.num_heads = vocab_size, d_model, num_heads
        self.kernel = kernel


class SelfAttention(nn.Module):
    def __init__(self, embed_dim, num_heads, bias=True, config: Optional[BlockConfig] = None):
        super().__init__()
        self.num_heads, self.config = num_heads, config
        self.q_proj = nn.Linear(embed_dim, embed_dim, bias=bias)
        self.k_proj = nn.Linear(embed_dim, embed_dim, bias=bias)
        self.v_proj = nn.Linear(embed_dim, embed_dim, bias=bias)
        self.out_proj = nn.Linear(embed_dim, embed_dim, bias=bias)

    def split(self, x):
        return x.view(*x.shape[:2], self.num_heads, -1).transpose(1, 2)

    def forward(self, hidden_states, attention_mask=None):
        q, k, v = (one(hidden_states) for one in (self.q_proj, self.k_proj, self.v_proj))
        q, k, v = self.split(q), self.split(k), self.split(v)
        if self.config.kernel == "fused":
            mixed = F.scaled_dot_product_attention(q, k, v, attn_mask=attention_mask)
        else:
            scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
            if attention_mask is not None:
                scores = scores + attention_mask
            mixed = scores.softmax(-1) @ v
        return self.out_proj(mixed.transpose(1, 2).flatten(2))
"""
FORMULA = "multi_head_attention.formula"
NEW = ("Optional[BlockConfig]", "BlockConfig | None")


@pytest.mark.parametrize("edits", [(), (NEW,)])
def test_optional_settings_that_a_call_reads_are_made(tmp_path, edits):
    backend = adapted(tmp_path, "SelfAttention", edited(ATTENTION, *edits))
    assert broken(backend, FORMULA) == []


def test_mistake_of_such_a_part_is_reported(tmp_path):
    wrong = " / q.shape[-1] ** 0.5", ""
    assert asked_or_broken(tmp_path, "SelfAttention", ATTENTION, *wrong, FORMULA)


def test_settings_that_no_call_reads_are_left_out(tmp_path):
    code = edited(ATTENTION, ('self.config.kernel == "fused"', "False"))
    backend = adapted(tmp_path, "SelfAttention", code)
    assert broken(backend, FORMULA) == []
    assert "BlockConfig(" not in "\n".join(backend.understood)
