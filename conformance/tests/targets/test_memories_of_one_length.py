"""Causal decoder layers that refuse a memory of another length than theirs."""

from mistaken_code import adapted, broken, edited

LAYER = """
import torch
from torch import nn


class Heads(nn.Module):
    def __init__(self, d_model, num_heads, masked=False):
        super().__init__()
        self.masked, self.num_heads = masked, num_heads
        self.W_q = nn.Linear(d_model, d_model, bias=False)
        self.W_k = nn.Linear(d_model, d_model, bias=False)
        self.W_v = nn.Linear(d_model, d_model, bias=False)
        self.W_o = nn.Linear(d_model, d_model, bias=False)

    def forward(self, x, y):
        b, n, d = x.shape
        q = self.W_q(x).view(b, n, self.num_heads, -1).transpose(1, 2)
        k = self.W_k(y).view(b, n, self.num_heads, -1).transpose(1, 2)
        v = self.W_v(y).view(b, n, self.num_heads, -1).transpose(1, 2)
        scores = q @ k.transpose(-2, -1) / (d // self.num_heads) ** 0.5
        if self.masked:
            later = torch.ones(n, n, dtype=torch.bool).triu(1)
            scores = scores.masked_fill(later, float("-inf"))
        out = scores.softmax(dim=-1) @ v
        return self.W_o(out.transpose(1, 2).reshape(b, n, d))


class DecoderBlock(nn.Module):
    def __init__(self, d_model, num_heads, ff_dim):
        super().__init__()
        self.masked_attention = Heads(d_model, num_heads, masked=True)
        self.cross = Heads(d_model, num_heads)
        self.ffn = nn.Sequential(nn.Linear(d_model, ff_dim), nn.ReLU(), nn.Linear(ff_dim, d_model))
        self.norm1 = nn.LayerNorm(d_model)
        self.norm2 = nn.LayerNorm(d_model)
        self.norm3 = nn.LayerNorm(d_model)

    def forward(self, x, encoder_output):
        x = self.norm1(x + self.masked_attention(x, x))
        x = self.norm2(x + self.cross(x, encoder_output))
        return self.norm3(x + self.ffn(x))
"""
CLAUSES = ("decoder.layer-formula", "decoder.causality", "decoder.separate-norms")


def test_layer_that_refuses_other_lengths_of_a_memory_is_read_as_causal(tmp_path):
    backend = adapted(tmp_path, "DecoderBlock", LAYER)
    assert any("hides later" in one for one in backend.understood)
    assert all("size" in one or "shape" in one for one in broken(backend, *CLAUSES))


def test_mistake_in_the_norms_of_such_a_layer_is_detected(tmp_path):
    twice = edited(LAYER, ("self.norm3(x + self.ffn(x))", "self.norm2(x + self.ffn(x))"))
    assert broken(adapted(tmp_path, "DecoderBlock", twice), *CLAUSES)
