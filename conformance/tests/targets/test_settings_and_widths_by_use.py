"""Settings by the object that is their default, and head widths by their products with heads."""

from pathlib import Path

import pytest
from folders import SUPPORT
from mistaken_code import adapted, broken, edited

NANO = (SUPPORT / "wild_language_models" / "nano.py").read_text()
START, END = NANO.index("@dataclass\nclass GPTConfig"), NANO.index("class GPT(nn.Module)")
OTHERS = "from dataclasses import dataclass\n\n\n" + NANO[START:END].replace("GPTConfig", "Sizes")
OTHERS = OTHERS.rstrip() + "\n\n\nown = Sizes()\n"
ELSEWHERE = NANO[:START] + edited(
    NANO[END:],
    ("def __init__(self, config):", "def __init__(self, config: sizes_of.Sizes = sizes_of.own):"),
)
ELSEWHERE = "from __future__ import annotations\n\n" + ELSEWHERE.replace(
    "import inspect\n", "import inspect\n\nimport sizes_of\n", 1
)

MODEL = """
import torch
from torch import nn
from torch.nn import functional as F


class Attention(nn.Module):
    def __init__(self, H, emb_dim, att_dim):
        super().__init__()
        self.H, self.att_dim = H, att_dim
        self.joint = nn.Linear(emb_dim, 3 * att_dim * H, bias=False)
        self.merge = nn.Linear(H * att_dim, emb_dim, bias=False)

    def forward(self, x):
        q, k, v = (
            one.unflatten(-1, (self.H, self.att_dim)).transpose(1, 2)
            for one in self.joint(x).chunk(3, dim=-1)
        )
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.merge(y.transpose(1, 2).flatten(2))


class TinyLM(nn.Module):
    def __init__(self, vocab_size=300, emb_dim=512, n_layers=6, n_heads=8, att_dim=64, max_len=256):
        super().__init__()
        self.tokens, self.places = nn.Embedding(vocab_size, emb_dim), nn.Embedding(max_len, emb_dim)
        self.norms = nn.ModuleList(nn.LayerNorm(emb_dim) for _ in range(2 * n_layers + 1))
        self.mixing = nn.ModuleList(Attention(n_heads, emb_dim, att_dim) for _ in range(n_layers))
        self.rise = nn.ModuleList(nn.Linear(emb_dim, 4 * emb_dim) for _ in range(n_layers))
        self.fall = nn.ModuleList(nn.Linear(4 * emb_dim, emb_dim) for _ in range(n_layers))
        self.head = nn.Linear(emb_dim, vocab_size, bias=False)

    def forward(self, idx):
        x = self.tokens(idx) + self.places(torch.arange(idx.shape[1]))
        for number, mixing in enumerate(self.mixing):
            x = x + mixing(self.norms[2 * number](x))
            y = F.gelu(self.rise[number](self.norms[2 * number + 1](x)))
            x = x + self.fall[number](y)
        return self.head(self.norms[-1](x))
"""
CLAUSE = "language_model.formula"


@pytest.mark.proof
@pytest.mark.parametrize("wrong", ["", "x = self.attn("])
def test_settings_of_another_module_are_those_of_the_default(tmp_path: Path, wrong: str) -> None:
    (tmp_path / "sizes_of.py").write_text(OTHERS)
    source = ELSEWHERE.replace("x = x + self.attn(", wrong) if wrong else ELSEWHERE
    backend = adapted(tmp_path, "GPT", source)
    assert "config=Sizes(block_size=sizes.max_length" in backend.adapter.building.expression
    assert bool(broken(backend, CLAUSE)) is bool(wrong)


@pytest.mark.proof
@pytest.mark.parametrize("wrong", ["", "x = mixing("])
def test_an_argument_times_heads_is_the_width_of_one(tmp_path: Path, wrong: str) -> None:
    source = MODEL.replace("x = x + mixing(", wrong) if wrong else MODEL
    backend = adapted(tmp_path, "TinyLM", source)
    assert "att_dim=sizes.d_model // sizes.heads" in backend.adapter.building.expression
    assert bool(broken(backend, CLAUSE)) is bool(wrong)
