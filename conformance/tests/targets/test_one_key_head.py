"""Attention whose heads share one head of keys and values, which no argument counts."""

import pytest
from proof import share
from user_files import write_files

import attentest
from attentest.targets.language_models.construction.building import Building
from attentest.targets.language_models.probing import has_one_key_head

ATTENTION = """
    import torch
    from torch import nn


    class MultiHeadAttention(nn.Module):
        def __init__(self, d_model, n_heads):
            super().__init__()
            self.n_heads, self.d_head = n_heads, d_model // n_heads
            PROJECTIONS
            self.out = nn.Linear(d_model, d_model)

        def forward(self, x):
            b, t, d = x.shape
            CALL
            q = q.view(b, t, self.n_heads, self.d_head).transpose(1, 2)
            k, v = k[:, None], v[:, None]
            scores = q @ k.transpose(-1, -2) / self.d_head**0.5
            hidden = torch.ones(t, t, dtype=torch.bool, device=x.device).triu(1)
            y = scores.masked_fill(hidden, float("-inf")).softmax(-1) @ v
            return self.out(y.transpose(1, 2).reshape(b, t, d))
"""
PACKED = (
    "self.qkv = nn.Linear(d_model, d_model + 2 * self.d_head)",
    "q, k, v = self.qkv(x).split([d, self.d_head, self.d_head], dim=-1)",
)
PAIR = (
    "self.q, self.kv = nn.Linear(d_model, d_model), nn.Linear(d_model, 2 * self.d_head)",
    "q, (k, v) = self.q(x), self.kv(x).chunk(2, -1)",
)
SINGLE = (
    "self.q = nn.Linear(d_model, d_model)\n"
    + " " * 12
    + "self.k, self.v = (nn.Linear(d_model, self.d_head) for _ in range(2))",
    "q, k, v = self.q(x), self.k(x), self.v(x)",
)
SHARED_CLAUSES = ["multi_head_attention.formula", "multi_head_attention.shared-key-heads"]
MODEL = """

    class Block(nn.Module):
        def __init__(self, d_model, n_heads):
            super().__init__()
            self.n1, self.n2 = nn.LayerNorm(d_model), nn.LayerNorm(d_model)
            self.attn = MultiHeadAttention(d_model, n_heads)
            self.ff = nn.Sequential(
                nn.Linear(d_model, 4 * d_model), nn.GELU(), nn.Linear(4 * d_model, d_model)
            )

        def forward(self, x):
            x = x + self.attn(self.n1(x))
            return x + self.ff(self.n2(x))


    class GPT(nn.Module):
        def __init__(self, vocab_size, d_model, n_heads, n_layers, max_len):
            super().__init__()
            self.tok = nn.Embedding(vocab_size, d_model)
            self.pos = nn.Embedding(max_len, d_model)
            self.blocks = nn.ModuleList(Block(d_model, n_heads) for _ in range(n_layers))
            self.norm = nn.LayerNorm(d_model)
            self.head = nn.Linear(d_model, vocab_size, bias=False)

        def forward(self, ids):
            x = self.tok(ids) + self.pos(torch.arange(ids.shape[1], device=ids.device))
            for block in self.blocks:
                x = block(x)
            return self.head(self.norm(x))
"""


def attention(folder, style, old="", new="", rest=""):
    projections, call = style
    text = ATTENTION.replace("PROJECTIONS", projections).replace("CALL", call)
    assert old in text
    return write_files(folder, mqa=text.replace(old, new) + rest) / "mqa.py"


@share(3, rest=1)
@pytest.mark.parametrize("style", [PACKED, PAIR, SINGLE], ids=["packed", "pair", "single"])
def test_one_head_of_keys_is_judged(tmp_path, style):
    file = attention(tmp_path, style)
    report = attentest.check(f"{file}:MultiHeadAttention", clauses=SHARED_CLAUSES)
    assert report.conforms, str(report)


@share(2, rest=1)
@pytest.mark.parametrize("style", [PACKED, SINGLE], ids=["packed", "single"])
def test_a_mistake_in_such_attention_is_a_violation(tmp_path, style):
    """With one head of keys, rows that are alike do not show that heads are merged wrongly."""
    file = attention(tmp_path, style, "y.transpose(1, 2).reshape", "y.reshape")
    report = attentest.check(f"{file}:MultiHeadAttention", clauses=SHARED_CLAUSES)
    assert not report.conforms


@pytest.mark.proof
def test_a_model_with_one_head_of_keys_is_judged(tmp_path):
    file = attention(tmp_path, PAIR, rest=MODEL)
    clauses = ["language_model.formula", "language_model.layer-formula"]
    report = attentest.check(f"{file}:GPT", clauses=clauses)
    assert report.conforms, str(report)
    assert "key_heads=fewer" in str(report)


@pytest.mark.parametrize(
    ("width", "shows"), [("24", False), ("sizes.d_model // sizes.heads", True)]
)
def test_a_fixed_width_is_no_head(width, shows):
    """A projection of a fixed width may be as wide as one head, at some sizes."""
    import torch

    space = {"nn": torch.nn}
    assert has_one_key_head(Building(f"nn.Linear(sizes.d_model, {width})", space)) == shows
