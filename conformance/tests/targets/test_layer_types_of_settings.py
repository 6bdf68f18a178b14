"""Decoder-only models whose settings say the kind of each layer, and refuse a dtype of None.

The class is written for these tests.
"""

import pytest
from mistaken_code import adapted, broken, edited

CODE = """
from dataclasses import dataclass

import torch
from torch import nn


@dataclass
class Config:
    vocab_size: int
    emb_dim: int
    n_heads: int
    n_layers: int
    context_length: int
    layer_types: list
    sliding_window: int = 4
    dtype: torch.dtype = torch.float32

    def __post_init__(self):
        if not isinstance(self.dtype, torch.dtype):
            raise TypeError("dtype has to be a torch.dtype")


class Layer(nn.Module):
    def __init__(self, cfg, kind):
        super().__init__()
        width, self.window = cfg.emb_dim, cfg.sliding_window if kind != "full_attention" else None
        self.heads = cfg.n_heads
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.packed, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        wide, narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.net = nn.Sequential(wide, nn.GELU(), narrow)

    def attend(self, x):
        q, k, v = self.packed(x).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        hidden = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(1)
        if self.window is not None:
            hidden |= ~torch.ones_like(hidden).triu(1 - self.window)
        scores = (q @ k.mT * q.shape[-1] ** -0.5).masked_fill(hidden, float("-inf"))
        return self.out((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))

    def forward(self, x):
        x = x + self.attend(self.first(x))
        return x + self.net(self.second(x))


class GPT(nn.Module):
    def __init__(self, cfg: Config):
        super().__init__()
        self.table = nn.Embedding(cfg.vocab_size, cfg.emb_dim, dtype=cfg.dtype)
        self.places = nn.Embedding(cfg.context_length, cfg.emb_dim)
        assert len(cfg.layer_types) == cfg.n_layers
        self.h = nn.ModuleList(Layer(cfg, kind) for kind in cfg.layer_types)
        self.norm, self.head = nn.LayerNorm(cfg.emb_dim), nn.Linear(cfg.emb_dim, cfg.vocab_size)

    def forward(self, tokens):
        x = self.table(tokens) + self.places.weight[: tokens.shape[1]]
        for layer in self.h:
            x = layer(x)
        return self.head(self.norm(x))
"""


def test_model_is_judged_with_one_kind_of_layers(tmp_path):
    backend = adapted(tmp_path, "GPT", CODE)
    assert any("not compared: layers of another kind" in one for one in backend.assumed)
    assert not broken(backend, "language_model.formula")


@pytest.mark.proof
def test_mistake_in_all_layers_is_found(tmp_path):
    backend = adapted(tmp_path, "GPT", edited(CODE, ("q.shape[-1] ** -0.5", "x.shape[-1] ** -0.5")))
    assert broken(backend, "language_model.formula")
