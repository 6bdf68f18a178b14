"""A mistake beside rotary positions that turn a quarter of the columns of a head: an even number.

The class is written for these tests.
"""

import pytest
from mistaken_code import adapted, broken, edited

CODE = """
import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads, self.size = heads, width // heads
        self.turned = self.size // 4
        self.before, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.packed, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        wide, narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.net = nn.Sequential(wide, nn.GELU(), narrow)

    def turn(self, x):
        rates = 10000.0 ** (-torch.arange(0, self.turned, 2) / self.turned)
        angles = torch.outer(torch.arange(x.shape[2]).float(), rates).repeat(1, 2).to(x)
        (a, b), rest = x[..., : self.turned].chunk(2, -1), x[..., self.turned :]
        own = torch.cat((a, b), -1) * angles.cos() + torch.cat((-b, a), -1) * angles.sin()
        return torch.cat((own, rest), -1)

    def attend(self, x):
        q, k, v = self.packed(x).unflatten(-1, (self.heads, -1)).transpose(1, 2).chunk(3, -1)
        scores = self.turn(q) @ self.turn(k).mT * self.size**-0.5
        later = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)
        rows = scores.masked_fill(later, float("-inf")).softmax(-1) @ v
        return self.out(rows.transpose(1, 2).reshape(x.shape))

    def forward(self, x):
        return x + self.attend(self.before(x)) + self.net(self.second(x))


class PartlyTurnedGPT(nn.Module):
    def __init__(self, vocab_size, hidden_size=128, num_layers=3, num_heads=4):
        super().__init__()
        self.table = nn.Embedding(vocab_size, hidden_size)
        self.layers = nn.ModuleList(Block(hidden_size, num_heads) for _ in range(num_layers))
        self.norm = nn.LayerNorm(hidden_size)
        self.head = nn.Linear(hidden_size, vocab_size, bias=False)

    def forward(self, input_ids):
        x = self.table(input_ids)
        for layer in self.layers:
            x = layer(x)
        return self.head(self.norm(x))
"""


@pytest.mark.proof
@pytest.mark.parametrize(
    ("edit", "is_right"),
    [((), True), ((("rows.transpose(1, 2).reshape", "rows.reshape"),), False)],
)
def test_heads_that_are_merged_wrongly_are_a_violation(tmp_path, edit, is_right):
    backend = adapted(tmp_path, "PartlyTurnedGPT", edited(CODE, *edit))
    assert bool(broken(backend, "language_model.formula")) is not is_right
    assert ("without being transposed" in " ".join(backend.understood)) is not is_right
