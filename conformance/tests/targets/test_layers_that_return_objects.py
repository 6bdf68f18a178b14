"""Decoder-only models whose layers return an object that holds the rows, and more besides.

The class is written for these tests.
"""

import pytest
from mistaken_code import adapted, broken, edited

from attentest.targets.members import members

CODE = """
from dataclasses import dataclass

import torch
from torch import nn


@dataclass
class Rows:
    x: torch.Tensor
    weights: torch.Tensor | None = None


class Attend(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        self.packed, self.out = nn.Linear(d_model, 3 * d_model), nn.Linear(d_model, d_model)
        self.heads = n_heads

    def forward(self, x):
        q, k, v = self.packed(x).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        later = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(1)
        scores = (q @ k.mT * q.shape[-1] ** -0.5).masked_fill(later, float("-inf"))
        return Rows(self.out((scores.softmax(-1) @ v).transpose(1, 2).flatten(2)), scores)


class CausalBlock(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        self.first, self.second = nn.LayerNorm(d_model), nn.LayerNorm(d_model)
        self.attend = Attend(d_model, n_heads)
        self.net = nn.Sequential(
            nn.Linear(d_model, 4 * d_model), nn.GELU(), nn.Linear(4 * d_model, d_model)
        )

    def forward(self, x):
        x = x + self.attend(self.first(x)).x
        return Rows(x + self.net(self.second(x)))


class GPT(nn.Module):
    def __init__(self, vocab_size, d_model, n_heads, n_layers, max_len):
        super().__init__()
        self.table, self.places = nn.Embedding(vocab_size, d_model), nn.Embedding(max_len, d_model)
        self.h = nn.ModuleList(CausalBlock(d_model, n_heads) for _ in range(n_layers))
        self.norm, self.head = nn.LayerNorm(d_model), nn.Linear(d_model, vocab_size)

    def forward(self, tokens, targets=None, shifted=True):
        if shifted is True:
            targets = nn.functional.pad(tokens, (0, 1), value=-100)[:, 1:]
        x = self.table(tokens) + self.places.weight[: tokens.shape[1]]
        for block in self.h:
            x = block(x).x
        return self.head(self.norm(x)), targets
"""


def test_members_of_a_file_with_such_layers_are_listed(tmp_path):
    (tmp_path / "own.py").write_text(CODE)
    found = {one.name: one for one in members(str(tmp_path / "own.py")) or ()}
    assert found["GPT"].component == "language_model"
    assert found["CausalBlock"].inside == "GPT"


@pytest.mark.proof
@pytest.mark.parametrize(("wrong", "is_right"), [("triu(1)", True), ("triu(2)", False)])
def test_such_a_model_is_judged(tmp_path, wrong, is_right):
    backend = adapted(tmp_path, "GPT", edited(CODE, ("triu(1)", wrong)))
    assert bool(broken(backend, "language_model.formula")) is not is_right
