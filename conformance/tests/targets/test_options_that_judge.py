"""Questions whose options were tried in vain name the step that differs with one of them."""

from pathlib import Path

import pytest
from mistaken_code import adapted, asked, broken, edited

CODE = """
from torch import nn
from torch.nn import functional as F


class Block(nn.Module):
    def __init__(self, emb, heads, mask):
        super().__init__()
        self.heads, self.mask = heads, mask
        self.qkv, self.out = nn.Linear(emb, 3 * emb), nn.Linear(emb, emb)
        self.norm1, self.norm2 = nn.LayerNorm(emb), nn.LayerNorm(emb)
        self.ff = nn.Sequential(nn.Linear(emb, 4 * emb), nn.ReLU(), nn.Linear(4 * emb, emb))

    def forward(self, x):
        q, k, v = (
            one.unflatten(-1, (self.heads, -1)).transpose(1, 2) for one in self.qkv(x).chunk(3, -1)
        )
        found = F.scaled_dot_product_attention(q, k, v, is_causal=self.mask)
        x = self.norm1(x + self.out(found.transpose(1, 2).flatten(2)))
        return self.norm2(x + self.ff(x))
"""
FORMULA = "encoder.layer-formula"


@pytest.mark.proof
def test_first_step_that_differs_with_an_option_is_named(tmp_path: Path) -> None:
    assert not broken(adapted(tmp_path, "Block", CODE), FORMULA)
    wrong = edited(CODE, ("is_causal=self.mask", "is_causal=self.mask, scale=0.1"))
    (tmp_path / "wrong.py").write_text(wrong)
    question = asked(f"{tmp_path / 'wrong.py'}:Block")
    assert "the first step that differs is" in question
    assert "own.py:18" not in question
    assert "wrong.py:18" in question
