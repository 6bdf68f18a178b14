"""Classes that are an encoder or a decoder by a switch of their constructor, which nothing says."""

import pytest
from mistaken_code import adapted, asked_or_broken, broken, edited
from proof import share

from attentest.targets.adapt.reading import Unclear

CODE = """
import torch
from torch import nn


class Attention(nn.Module):
    def __init__(self, width, heads, is_gpt, use_flash):
        super().__init__()
        self.heads, self.is_gpt, self.use_flash = heads, is_gpt, use_flash
        self.query, self.key, self.value, self.out = (nn.Linear(width, width) for _ in range(4))

    def forward(self, x, keep):
        q, k, v = (
            one(x).unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for one in (self.query, self.key, self.value)
        )
        if self.is_gpt:
            keep = keep & torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).tril()
        if self.use_flash:
            y = nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=keep)
        else:
            scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
            y = scores.masked_fill(~keep, -1e9).softmax(-1) @ v
        return self.out(y.transpose(1, 2).flatten(2))


class Layer(nn.Module):
    def __init__(self, width, heads, inner, is_gpt, use_flash):
        super().__init__()
        self.attention = Attention(width, heads, is_gpt, use_flash)
        self.network = nn.Sequential(nn.Linear(width, inner), nn.ReLU(), nn.Linear(inner, width))
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)

    def forward(self, x, keep):
        x = self.norm1(x + self.attention(x, keep))
        return self.norm2(x + self.network(x))


class Transformer(nn.Module):
    def __init__(self, vocab_size, d_model, n_heads, d_ff, n_layers, is_gpt, use_flash):
        super().__init__()
        self.embed = nn.Embedding(vocab_size, d_model)
        self.layers = nn.ModuleList(
            Layer(d_model, n_heads, d_ff, is_gpt, use_flash) for _ in range(n_layers)
        )

    def forward(self, ids):
        keep, x = (ids > 0)[:, None, None], self.embed(ids)
        for layer in self.layers:
            x = layer(x, keep)
        return x
"""


@pytest.mark.proof
def test_switches_of_decoders_are_off_in_an_encoder(tmp_path):
    backend = adapted(tmp_path, "Transformer", CODE)
    assert any("is_gpt is False" in one for one in backend.assumed)
    assert not broken(backend, "encoder.formula", "encoder.padding-invariance")


MISTAKES = [
    ("~keep, -1e9", "keep, -1e9"),
    (".softmax(-1) @ v", ".softmax(-2) @ v"),
    ("self.norm2(x + self.network(x))", "self.norm2(self.network(x))"),
]


@share(2, rest=1)
@pytest.mark.parametrize(("right", "wrong"), MISTAKES)
def test_mistakes_besides_such_switches_are_not_passed(tmp_path, right, wrong):
    clauses = "encoder.formula", "encoder.padding-invariance"
    assert asked_or_broken(tmp_path, "Transformer", CODE, right, wrong, *clauses)


def test_other_switches_are_asked_about(tmp_path):
    scaled = edited(CODE, ("is_gpt", "is_odd"), ("keep & torch.ones", "~keep & torch.ones"))
    with pytest.raises(Unclear):
        adapted(tmp_path, "Transformer", scaled)
