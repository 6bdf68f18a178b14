"""Attention whose arguments `d_query` and `d_kv` are the width of its inputs."""

from pathlib import Path

from mistaken_code import adapted, broken, edited

from attentest.targets.models.size_names import is_input_width

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


OF_UNITS = """
import torch
from torch import nn


class MultiHeadAttention(nn.Module):
    def __init__(self, query_dim: int, key_dim: int, num_units: int, num_heads: int):
        super().__init__()
        self.num_heads, self.width = num_heads, num_units // num_heads
        self.w_query = nn.Linear(query_dim, num_units, bias=False)
        self.w_key = nn.Linear(key_dim, num_units, bias=False)
        self.w_value = nn.Linear(key_dim, num_units, bias=False)
        self.key_dim = key_dim

    def forward(self, query, key):
        q, k, v = (
            torch.stack(way(x).split(self.width, -1))
            for way, x in ((self.w_query, query), (self.w_key, key), (self.w_value, key))
        )
        weights = (q @ k.transpose(2, 3) / self.width**0.5).softmax(-1)
        return torch.cat((weights @ v).unbind(0), -1)
"""


def test_widths_of_both_inputs_and_of_the_units_are_that_of_the_model(tmp_path: Path) -> None:
    assert not broken(adapted(tmp_path, "MultiHeadAttention", OF_UNITS), FORMULA)
    (tmp_path / "wrong").mkdir()
    wrong = edited(OF_UNITS, ("self.width**0.5", "self.key_dim**0.5"))
    assert broken(adapted(tmp_path / "wrong", "MultiHeadAttention", wrong), FORMULA)


THREE = edited(
    CODE,
    ("d_query, d_kv=None, num_heads=4", "dim_q, dim_k, dim_v, num_heads=4"),
    ("assert d_query % num_heads == 0", "d_query, self.num_heads = dim_q, num_heads"),
    ("        self.num_heads, rest = num_heads, d_query if d_kv is None else d_kv\n", ""),
    ("k_proj, self.v_proj = nn.Linear(rest,", "k_proj, self.v_proj = nn.Linear(dim_k,"),
    ("nn.Linear(rest, d_query)", "nn.Linear(dim_v, d_query)"),
)


def test_three_widths_without_that_of_the_model_are_those_of_the_inputs(tmp_path: Path) -> None:
    assert not broken(adapted(tmp_path, "MultiHeadAttention", THREE), FORMULA)
    scaled = ("attention(q, k, v)", "attention(q, k, v, scale=query.shape[-1] ** -0.5)")
    assert broken(adapted(tmp_path, "MultiHeadAttention", edited(THREE, scaled)), FORMULA)


def test_three_widths_next_to_that_of_the_model_are_those_of_a_head() -> None:
    three = ["dq", "dk", "dv"]
    assert all(is_input_width(one, [*three, "nhead"]) for one in three)
    assert not any(is_input_width(one, [*three, "nhead", "dmodel"]) for one in three)
    assert not is_input_width("dk", ["dk", "dv", "nhead"])
