"""Decoder-only models that cannot be called before a method has made their caches."""

from pathlib import Path

import pytest
import torch
from mistaken_code import adapted, broken, edited
from torch import Tensor, nn

from attentest.targets.language_models.construction.building import Building
from attentest.targets.language_models.surrounded.set_up import with_set_up

CODE = """
import torch
from torch import nn


class Cache(nn.Module):
    def __init__(self, shape, dtype):
        super().__init__()
        self.register_buffer("k", torch.zeros(shape, dtype=dtype))
        self.register_buffer("v", torch.zeros(shape, dtype=dtype))

    def update(self, at, k, v):
        self.k[:, :, at], self.v[:, :, at] = k, v
        return self.k, self.v


class Block(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads, self.cache = heads, None
        self.first, self.second = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.packed, self.out = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.up, self.down = nn.Linear(dim, 4 * dim), nn.Linear(4 * dim, dim)

    def forward(self, x, at, seen):
        b, t, c = x.shape
        q, k, v = (one.transpose(1, 2) for one in
                   self.packed(self.first(x)).view(b, t, 3, self.heads, -1).unbind(2))
        k, v = self.cache.update(at, k, v)
        scores = (q @ k.mT * q.shape[-1] ** -0.5).masked_fill(~seen, -torch.inf)
        x = x + self.out((scores.softmax(-1) @ v).transpose(1, 2).reshape(b, t, c))
        return x + self.down(torch.relu(self.up(self.second(x))))


class Transformer(nn.Module):
    def __init__(self, vocab_size, dim, heads, block_size, layers=2):
        super().__init__()
        self.heads, self.seen = heads, None
        self.tokens, self.places = nn.Embedding(vocab_size, dim), nn.Embedding(block_size, dim)
        self.blocks = nn.ModuleList([Block(dim, heads) for _ in range(layers)])
        self.final, self.head = nn.LayerNorm(dim), nn.Linear(dim, vocab_size)

    def setup_caches(self, max_batch_size, max_seq_length):
        weight = self.head.weight
        shape = max_batch_size, self.heads, max_seq_length, weight.shape[1] // self.heads
        for block in self.blocks:
            block.cache = Cache(shape, weight.dtype)
        self.seen = torch.ones(max_seq_length, max_seq_length).tril().bool()

    def forward(self, idx, input_pos=None):
        assert self.seen is not None, "the caches are not made"
        x = self.tokens(idx) + self.places(input_pos)
        for block in self.blocks:
            x = block(x, input_pos, self.seen[None, None, input_pos])
        return self.head(self.final(x))
"""
FORMULA = "language_model.formula"


class Ready(nn.Module):
    """A model that counts what it was made ready for."""

    def __init__(self) -> None:
        super().__init__()
        self.made: list[tuple[int, int]] = []
        self.weight = nn.Parameter(torch.ones(1))

    def setup_caches(self, batch_size: int, max_length: int) -> None:
        """Make caches."""
        self.made.append((batch_size, max_length))

    def forward(self, tokens: Tensor, positions: Tensor) -> Tensor:
        """Return what it was made for, and the positions."""
        return torch.tensor([*self.made[0], *positions]) * self.weight


def test_caches_are_made_anew_for_each_call() -> None:
    made = with_set_up(Building("Ready()", {"Ready": Ready}), Ready)
    assert made is not None
    assert "setup_caches(batch_size, max_length) makes caches" in made.doubts[0]
    model = eval(made.expression, dict(made.space))
    assert model(torch.ones(2, 3)).tolist() == [2, 3, 0, 1, 2]
    model(torch.ones(1, 2)).sum().backward()
    assert model.model.made == []
    assert model.model.weight.grad is not None
    assert with_set_up(made, Ready) is None
    assert with_set_up(made, nn.Linear) is None


@pytest.mark.proof
def test_model_whose_caches_a_method_makes_conforms(tmp_path: Path) -> None:
    backend = adapted(tmp_path, "Transformer", CODE)
    assert "SetUp(" in backend.adapter.building.expression  # type: ignore[attr-defined]
    assert broken(backend, FORMULA, "language_model.every-layer-counts") == []


@pytest.mark.proof
@pytest.mark.parametrize(
    ("right", "wrong"), [("tril()", "tril(1)"), ("x = x + self.out", "x = self.out")]
)
def test_mistake_in_a_model_whose_caches_a_method_makes_is_found(
    right: str, wrong: str, tmp_path: Path
) -> None:
    assert broken(adapted(tmp_path, "Transformer", edited(CODE, (right, wrong))), FORMULA)
