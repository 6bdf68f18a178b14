"""Remarks on maps of parameters: they say what the numbers show in the end."""

from pathlib import Path

from mistaken_code import adapted

CODE = """
import torch
from torch import nn


class CappedAttention(nn.Module):
    def __init__(self, d_model: int, n_heads: int):
        super().__init__()
        self.n_heads = n_heads
        self.qkv = nn.Linear(d_model, 3 * d_model, bias=False)
        self.out = nn.Linear(d_model, d_model, bias=False)

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, self.n_heads, -1).permute(2, 0, 3, 1, 4)
        scores = 5.0 * torch.tanh(q @ k.mT / q.shape[-1] ** 0.5 / 5.0)
        scores = scores.masked_fill(torch.ones(t, t, dtype=torch.bool).triu(1), float("-inf"))
        return self.out((scores.softmax(-1) @ v).transpose(1, 2).reshape(b, t, d))
"""


def test_map_whose_numbers_options_explain_is_said_to_give_them(tmp_path: Path) -> None:
    backend = adapted(tmp_path, "CappedAttention", CODE, component="multi_head_attention")
    words = " ".join(backend.understood)
    assert "gives the spec's numbers under the options measured" in words
    assert "no assignment gives" not in words
