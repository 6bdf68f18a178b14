"""Decoder-only models in which layers far from the first are others, and blocks with a number."""

from pathlib import Path

import pytest
from mistaken_code import adapted, broken, edited

from attentest.targets.adapt import Unclear

CODE = """
import torch
import torch.nn.functional as F
from torch import nn


class Block(nn.Module):
    def __init__(self, width, heads, hidden, i, every=4):
        super().__init__()
        self.heads, self.turns = heads, (i + 1) % every != 0
        self.norm1, self.norm2 = nn.RMSNorm(width, 1e-6), nn.RMSNorm(width, 1e-6)
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.out = nn.Linear(width, width, bias=False)
        self.gate = nn.Linear(width, hidden, bias=False)
        self.up = nn.Linear(width, hidden, bias=False)
        self.down = nn.Linear(hidden, width, bias=False)

    def turned(self, x, cos, sin):
        a, b = x.chunk(2, -1)
        return x * cos + torch.cat((-b, a), -1) * sin if self.turns else x

    def forward(self, x, cos, sin):
        q, k, v = (
            one.unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for one in self.qkv(self.norm1(x)).chunk(3, -1)
        )
        q, k = self.turned(q, cos, sin), self.turned(k, cos, sin)
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).flatten(2))
        h = self.norm2(x)
        return x + self.down(F.silu(self.gate(h)) * self.up(h))


class Model(nn.Module):
    def __init__(self, vocab_size, width, heads, hidden, n_layers, every=4):
        super().__init__()
        self.embed = nn.Embedding(vocab_size, width)
        blocks = [Block(width, heads, hidden, i, every) for i in range(n_layers)]
        self.blocks = nn.ModuleList(blocks)
        self.norm = nn.RMSNorm(width, 1e-6)
        self.head = nn.Linear(width, vocab_size, bias=False)
        self.columns = width // heads

    def forward(self, tokens):
        steps = torch.arange(0, self.columns, 2, dtype=torch.float64) / self.columns
        angles = torch.outer(torch.arange(tokens.shape[1], dtype=torch.float64), 1e4**-steps)
        angles = torch.cat((angles, angles), -1)
        x = self.embed(tokens)
        cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
        for block in self.blocks:
            x = block(x, cos, sin)
        return self.head(self.norm(x))
"""


@pytest.mark.proof
def test_every_fourth_layer_without_positions_is_an_assumption(tmp_path: Path) -> None:
    backend = adapted(tmp_path, "Model", CODE)
    assert any("numbers 3, 7, 11" in one and "rotary=none" in one for one in backend.assumed)
    assert backend.limits.layers == 3
    assert broken(backend, "language_model.formula", "language_model.rotary") == []
    with pytest.raises(Unclear):
        adapted(tmp_path, "Model", CODE, strict=True)


TWO_BASES = (
    (
        "x * cos + torch.cat((-b, a), -1) * sin if self.turns else x",
        "x * cos + torch.cat((-b, a), -1) * sin",
    ),
    (
        "1e4**-steps)",
        "1e4**-steps)\n"
        "        far = torch.outer(torch.arange(tokens.shape[1]).double(), 1e6**-steps)"
        "\n        far = torch.cat((far, far), -1)",
    ),
    (
        "x = block(x, cos, sin)",
        "a = angles if block.turns else far\n"
        "            x = block(x, a.cos().to(x.dtype), a.sin().to(x.dtype))",
    ),
)


@pytest.mark.proof
def test_second_layer_without_positions_is_an_assumption(tmp_path: Path) -> None:
    backend = adapted(tmp_path, "Model", CODE, given={"every": 2})
    assert any("numbers 1, 3, 5, .." in one for one in backend.assumed)
    assert broken(backend, "language_model.formula") == []


@pytest.mark.proof
def test_layers_of_two_bases_in_turn_are_an_assumption(tmp_path: Path) -> None:
    code = edited(CODE, *TWO_BASES)
    backend = adapted(tmp_path, "Model", code, given={"every": 3})
    assert any("numbers 2, 5, 8, .." in one and "base=1000000" in one for one in backend.assumed)
    assert broken(backend, "language_model.formula") == []


MISTAKES = {
    "keys of every fourth layer alone": (("self.turned(k, cos, sin)\n", "k\n"),),
    "one layer alone": (("(i + 1) % every != 0", "i != 3"),),
    "all but the first layer": (("(i + 1) % every != 0", "i == 0"),),
    "another direction in every second layer": (
        ("if self.turns else x", "if self.turns else x * cos - torch.cat((-b, a), -1) * sin * 2"),
    ),
}


@pytest.mark.proof
@pytest.mark.parametrize("name", MISTAKES)
def test_layers_that_differ_otherwise_are_no_assumption(tmp_path: Path, name: str) -> None:
    with pytest.raises(Unclear):
        adapted(tmp_path, "Model", edited(CODE, *MISTAKES[name]), given={"every": 2})


def test_the_model_without_such_layers_is_judged(tmp_path: Path) -> None:
    backend = adapted(tmp_path, "Model", CODE, given={"every": 100})
    assert broken(backend, "language_model.formula") == []


@pytest.mark.proof
def test_a_mistake_that_begins_with_the_seventh_layer_does_not_pass(tmp_path: Path) -> None:
    right = "range(n_layers)]\n"
    mistake = CODE.replace(right, right + "        blocks[6:] = [blocks[0]] * len(blocks[6:])\n")
    with pytest.raises(Unclear, match="with up to 6 layers, and not with 7"):
        adapted(tmp_path, "Model", mistake, given={"every": 100})


def test_the_number_of_a_block_is_that_of_the_first(tmp_path: Path) -> None:
    backend = adapted(tmp_path, "Block", CODE)
    assert "i=sizes.max_length" not in " ".join(backend.understood)
    assert broken(backend, "encoder.layer-formula") == []


DEEPER = (
    ("Block", "DecoderLayer"),
    ("hidden, i, every=4", "hidden, layer_idx"),
    (
        "self.heads, self.turns = heads, (i + 1) % every != 0",
        "self.heads, self.turns = heads, True\n"
        "        self.extra = nn.Linear(width, width) if layer_idx > 2 else nn.Identity()\n"
        "        self.over_q, self.over_k = (nn.RMSNorm(width // heads, 1e-6) for _ in range(2))",
    ),
    (
        "        q, k = self.turned",
        "        q, k = self.over_q(q), self.over_k(k)\n        q, k = self.turned",
    ),
    (
        "x + self.down(F.silu(self.gate(h)) * self.up(h))",
        "x + self.extra(self.down(F.silu(self.gate(h)) * self.up(h)))",
    ),
)


@pytest.mark.proof
def test_block_that_differs_by_its_number_is_not_blamed_for_given_tables(tmp_path: Path) -> None:
    """Tables in another form than it takes would have the angles of other pairs of columns."""
    with pytest.raises(Unclear):
        adapted(tmp_path, "DecoderLayer", edited(CODE, *DEEPER))
