"""Functions and plain objects that the code of a whole model calls, which are its parts."""

from pathlib import Path

from mistaken_code import edited

from attentest.targets.members import members

CODE = """
import torch
from torch import nn


class Turn:
    def __init__(self, share):
        self.share = share

    def __call__(self, x):
        rows = torch.arange(x.shape[-2]).float()[:, None]
        rates = 10000 ** (-torch.arange(0, self.share, 2).float() / self.share)
        (first, second), rest = x[..., : self.share].chunk(2, -1), x[..., self.share :]
        cos, sin = (rows * rates).cos().to(x), (rows * rates).sin().to(x)
        turned = [first * cos - second * sin, second * cos + first * sin]
        return torch.cat([*turned, rest], -1)


def self_attention(maps, x, heads, turn):
    q, k, v = (maps[i](x).unflatten(-1, (heads, -1)).transpose(1, 2) for i in range(3))
    q, k = (turned(turn, one) for one in (q, k))
    scores = q @ k.mT * q.shape[-1] ** -0.5
    hidden = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)
    rows = scores.masked_fill(hidden, float("-inf")).softmax(-1) @ v
    return maps[3](rows.transpose(1, 2).flatten(2))


def turned(turn, one):
    return turn(one)


def attention(maps, x, heads):
    return maps[0](x)


def block(part, x, heads, turn):
    x = x + self_attention(part["maps"], part["norm1"](x), heads, turn)
    return x + part["mlp"](part["norm2"](x))


class Text(nn.Module):
    def __init__(self, vocab_size, d_model, n_heads, n_layers):
        super().__init__()
        self.table, self.heads = nn.Embedding(vocab_size, d_model), n_heads
        self.turn = Turn(d_model // n_heads)
        self.parts = nn.ModuleList(self.part(d_model) for _ in range(n_layers))
        self.attention = nn.LayerNorm(d_model)
        self.head = nn.Linear(d_model, vocab_size)

    def part(self, d):
        mlp = nn.Sequential(nn.Linear(d, 4 * d), nn.GELU(), nn.Linear(4 * d, d))
        maps = nn.ModuleList(nn.Linear(d, d) for _ in range(4))
        norms = {"norm1": nn.LayerNorm(d), "norm2": nn.LayerNorm(d)}
        return nn.ModuleDict({"maps": maps, "mlp": mlp, **norms})

    def forward(self, tokens):
        x = self.table(tokens)
        for part in self.parts:
            x = block(part, x, self.heads, self.turn)
        return self.head(self.attention(x))
"""


def parts(folder: Path, code: str) -> dict[str, str]:
    """Return the members of a file that are parts of a model of it, by their names."""
    file = folder / "own.py"
    file.write_text(code)
    return {one.name: one.inside for one in members(str(file)) or () if one.inside}


def test_function_called_by_a_function_of_a_model_is_a_part_of_it(tmp_path: Path) -> None:
    assert parts(tmp_path, CODE)["self_attention"] == "Text"


def test_object_that_a_model_makes_is_a_part_of_it(tmp_path: Path) -> None:
    named = edited(CODE, ("Turn", "RotaryTurn"))
    assert parts(tmp_path, named)["RotaryTurn"] == "Text"


def test_function_that_no_model_calls_is_no_part(tmp_path: Path) -> None:
    assert "attention" not in parts(tmp_path, CODE)  # though an attribute has its name
