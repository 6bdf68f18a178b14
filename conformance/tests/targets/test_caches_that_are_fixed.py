"""Decoder-only models of which a user fixes the cache: they are judged without it."""

import math

import pytest
import torch
from torch import Tensor, nn

import attentest
from attentest.targets.adapt import Unclear

FORMULA = "language_model.formula"


class Attention(nn.Module):
    """Masked self-attention whose earlier values come back at half their size from a cache."""

    def __init__(self, dim: int, heads: int) -> None:
        super().__init__()
        self.heads, self.scale = heads, math.sqrt(dim // heads)
        self.query, self.key = nn.Linear(dim, dim), nn.Linear(dim, dim)
        self.value, self.output = nn.Linear(dim, dim), nn.Linear(dim, dim)

    def forward(self, x: Tensor, past: tuple[Tensor, Tensor] | None) -> tuple[Tensor, object]:
        query, key, value = (
            one(x).unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for one in (self.query, self.key, self.value)
        )
        if past is not None:
            key, value = torch.cat([past[0], key], 2), torch.cat([past[1] / 2, value], 2)
        order = torch.ones(len(key[0, 0]), len(key[0, 0]), device=x.device).bool()
        hidden = ~order.tril()[-x.shape[1] :]
        scores = (query @ key.mT / self.scale).masked_fill(hidden, -torch.inf)
        return self.output((scores.softmax(-1) @ value).transpose(1, 2).flatten(2)), (key, value)


class Block(nn.Module):
    def __init__(self, dim: int, heads: int) -> None:
        super().__init__()
        self.attention = Attention(dim, heads)
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.network = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim))

    def forward(self, x: Tensor, past: tuple[Tensor, Tensor] | None) -> tuple[Tensor, object]:
        read, kept = self.attention(self.norm1(x), past)
        x = x + read
        return x + self.network(self.norm2(x)), kept


class Model(nn.Module):
    """A model whose steps with a cache are wrong, and whose output without one is right."""

    def __init__(self, vocab_size: int, dim: int, layers: int, heads: int, max_len: int) -> None:
        super().__init__()
        self.tokens, self.positions = nn.Embedding(vocab_size, dim), nn.Embedding(max_len, dim)
        self.blocks = nn.ModuleList(Block(dim, heads) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(dim), nn.Linear(dim, vocab_size, bias=False)

    def forward(self, ids: Tensor, past_key_values: list | None = None) -> tuple[Tensor, list]:
        first = 0 if past_key_values is None else past_key_values[0][0].shape[2]
        places = torch.arange(first, first + ids.shape[1], device=ids.device)
        x, kept = self.tokens(ids) + self.positions(places), []
        for at, block in enumerate(self.blocks):
            x, own = block(x, None if past_key_values is None else past_key_values[at])
            kept.append(own)
        return self.head(self.norm(x)), kept


@pytest.mark.proof
def test_steps_that_no_known_mistake_gives_are_a_question() -> None:
    with pytest.raises(Unclear, match="--give past_key_values=None"):
        attentest.adapted(Model)


@pytest.mark.proof
def test_the_option_of_the_question_judges_without_the_cache() -> None:
    read = attentest.adapted(Model, given={"past_key_values": None})
    assert "not judged: past_key_values" in "\n".join(read.understood)
    report = attentest.check(read, clauses=[FORMULA])
    assert report[FORMULA].status == "pass", str(report)
