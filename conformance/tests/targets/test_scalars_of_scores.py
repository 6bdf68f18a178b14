"""Numbers by whose square roots scores are divided, as arguments."""

import inspect
from pathlib import Path

from mistaken_code import asked_or_broken

from attentest.targets.adapt.fillings import filling_of
from attentest.targets.adapt.reading import Reading

SOURCE = """
import torch
from torch import nn


class Attention(nn.Module):
    def __init__(self, hidden_size, num_heads, query_pre_attn_scalar):
        super().__init__()
        self.heads = num_heads
        self.scaling = query_pre_attn_scalar**-0.5
        self.q_proj = nn.Linear(hidden_size, hidden_size, bias=False)
        self.k_proj = nn.Linear(hidden_size, hidden_size, bias=False)
        self.v_proj = nn.Linear(hidden_size, hidden_size, bias=False)
        self.o_proj = nn.Linear(hidden_size, hidden_size, bias=False)

    def forward(self, x, mask=None):
        b, t, d = x.shape
        maps = (self.q_proj, self.k_proj, self.v_proj)
        q, k, v = (p(x).view(b, t, self.heads, -1).transpose(1, 2) for p in maps)
        s = q @ k.mT * self.scaling
        if mask is not None:
            s = s.masked_fill(~mask, -1e9)
        return self.o_proj((s.softmax(-1) @ v).transpose(1, 2).reshape(b, t, d))
"""
FORMULA = "multi_head_attention.formula"


def test_number_that_queries_are_scaled_by_is_the_width_of_a_head() -> None:
    name = "query_pre_attn_scalar"
    taken = inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY)
    filling = filling_of(name, taken, "multi_head_attention", Reading(), (name, "num_heads"))
    assert filling is not None
    assert filling.code == "head_width(sizes)"


def test_mistaken_scale_is_detected(tmp_path: Path) -> None:
    right, wrong = "query_pre_attn_scalar**-0.5", "hidden_size**-0.5"
    assert asked_or_broken(tmp_path, "Attention", SOURCE, right, wrong, FORMULA)
