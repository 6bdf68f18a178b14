"""Parts whose sizes are assigned where their file is run as a script alone."""

import pytest
from mistaken_code import adapted, broken

from attentest.targets.adapt import Unclear

PARTS = """
import torch
from torch import nn


class MultiHeadAttention(nn.Module):
    def __init__(self):
        super().__init__()
        self.W_Q, self.W_K = nn.Linear(d_model, d_k * n_heads), nn.Linear(d_model, d_k * n_heads)
        self.W_V, self.out = nn.Linear(d_model, d_v * n_heads), nn.Linear(n_heads * d_v, d_model)

    def forward(self, Q, K, V, attn_mask):
        q, k = (
            way(x).view(len(x), -1, n_heads, d_k).transpose(1, 2)
            for way, x in ((self.W_Q, Q), (self.W_K, K))
        )
        v = self.W_V(V).view(len(V), -1, n_heads, d_v).transpose(1, 2)
        scores = q @ k.transpose(-1, -2) / d_k**0.5
        scores = scores.masked_fill(attn_mask.unsqueeze(1), -1e9)
        context = (scores.softmax(-1) @ v).transpose(1, 2).reshape(len(Q), -1, n_heads * d_v)
        return self.out(context)


class PoswiseFeedForwardNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)

    def forward(self, x):
        return self.second(torch.relu(self.first(x)))


if __name__ == "__main__":
    n_heads = 8
    d_model = 512
    d_ff = 2048
    d_k = d_v = 64
"""
FORMULA = "multi_head_attention.formula"


def test_parts_with_sizes_of_a_script_are_judged(tmp_path):
    backend = adapted(tmp_path, "MultiHeadAttention", PARTS)
    assert not broken(backend, FORMULA)
    assert any("d_k=d_model/heads" in one for one in backend.assumed)
    network = adapted(tmp_path, "PoswiseFeedForwardNet", PARTS)
    assert not broken(network, "feed_forward.formula")


def test_scale_without_its_root_in_such_parts_is_a_violation(tmp_path):
    wrong = PARTS.replace("d_k**0.5", "d_k")
    assert broken(adapted(tmp_path, "MultiHeadAttention", wrong), FORMULA)


def test_size_that_no_name_says_is_one_question(tmp_path):
    wrong = PARTS.replace("d_ff", "amount")
    with pytest.raises(Unclear, match="reads amount, which is not defined"):
        adapted(tmp_path, "PoswiseFeedForwardNet", wrong)
