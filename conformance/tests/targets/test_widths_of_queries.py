"""Attention whose arguments `d_query` and `d_kv` are the width of its inputs."""

from pathlib import Path

from mistaken_code import adapted, broken, edited

CODE = """
from torch import nn
from torch.nn import functional as F


class MultiHeadAttention(nn.Module):
    def __init__(self, d_query, d_kv=None, num_heads=4):
        super().__init__()
        assert d_query % num_heads == 0
        self.num_heads, rest = num_heads, d_query if d_kv is None else d_kv
        self.q_proj, self.out_proj = nn.Linear(d_query, d_query), nn.Linear(d_query, d_query)
        self.k_proj, self.v_proj = nn.Linear(rest, d_query), nn.Linear(rest, d_query)

    def forward(self, query, key, value):
        q, k, v = (
            way(x).unflatten(-1, (self.num_heads, -1)).transpose(1, 2)
            for way, x in ((self.q_proj, query), (self.k_proj, key), (self.v_proj, value))
        )
        out = F.scaled_dot_product_attention(q, k, v)
        return self.out_proj(out.transpose(1, 2).flatten(2))
"""
FORMULA = "multi_head_attention.formula"


def test_widths_of_queries_and_keys_are_those_of_the_inputs(tmp_path: Path) -> None:
    assert not broken(adapted(tmp_path, "MultiHeadAttention", CODE), FORMULA)


def test_heads_that_are_merged_without_a_transposition_are_detected(tmp_path: Path) -> None:
    wrong = edited(CODE, ("out.transpose(1, 2).flatten(2)", "out.reshape(*query.shape)"))
    assert broken(adapted(tmp_path, "MultiHeadAttention", wrong), FORMULA)
