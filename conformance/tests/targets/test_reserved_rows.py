"""Trained tables of positions that have rows in front of that of the first position."""

from pathlib import Path

import pytest
from mistaken_code import adapted, broken

from attentest.targets.adapt import Unclear

FORMULA = "positional_encoding.formula"

CODE = """
import torch
from torch import nn


class LearnedPositionalEmbedding(nn.Module):
    def __init__(self, max_len, d_model):
        super().__init__()
        self.rows = nn.Embedding(max_len + 2, d_model)

    def forward(self, x):
        return x + self.rows(torch.arange(x.size(1)) + 2)
"""


@pytest.mark.parametrize("count", ["1", "2", "3"])
def test_a_table_that_begins_behind_reserved_rows_is_judged(tmp_path: Path, count: str) -> None:
    backend = adapted(tmp_path, "LearnedPositionalEmbedding", CODE.replace("+ 2", f"+ {count}"))
    assert backend.choices["position_offset"] == float(count)
    assert broken(backend, FORMULA) == []


@pytest.mark.parametrize(
    ("right", "other"),
    [
        (") + 2)", "))"),
        (") + 2)", ") + 1)"),
        ("max_len + 2", "max_len + 5"),
        ("x + self.rows", "x - self.rows"),
    ],
    ids=["from the first row", "from another row", "more rows", "another sum"],
)
def test_another_use_of_its_rows_is_a_question(tmp_path: Path, right: str, other: str) -> None:
    assert right in CODE
    with pytest.raises(Unclear):
        adapted(tmp_path, "LearnedPositionalEmbedding", CODE.replace(right, other))


@pytest.mark.parametrize("default", ["0", "None"])
def test_a_layer_index_without_a_value_is_that_of_the_first_layer(
    tmp_path: Path, default: str
) -> None:
    code = f"""
import torch
from torch import nn


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, n_heads, layer_idx={default}):
        super().__init__()
        self.kind = ["full", "local"][layer_idx]
        self.heads = n_heads
        self.q, self.k, self.v, self.o = (nn.Linear(d_model, d_model) for _ in range(4))

    def forward(self, query, key, value):
        q, k, v = (
            part(one).unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for part, one in ((self.q, query), (self.k, key), (self.v, value))
        )
        weights = (q @ k.mT / q.size(-1) ** 0.5).softmax(-1)
        return self.o((weights @ v).transpose(1, 2).flatten(2))
"""
    backend = adapted(tmp_path, "MultiHeadAttention", code)
    assert broken(backend, "multi_head_attention.formula") == []
