"""Encodings whose settings hold a length by no known name, next to a size that is taken for one."""

from pathlib import Path

import pytest
from mistaken_code import adapted, broken, edited

from attentest.judging.bench import Bench
from attentest.judging.judge import judge
from attentest.results.verdict import Status

CODE = """
import torch
from torch import nn


class Config:
    vocab_size: int = 50304
    n_embed: int = 512
    span: int = 128


class PositionalEncoding(nn.Module):
    def __init__(self, config):
        super().__init__()
        steps = torch.arange(0, config.span).double()[:, None]
        turns = 10000.0 ** (-torch.arange(0, config.n_embed, 2).double() / config.n_embed)
        table = torch.zeros(config.span, config.n_embed, dtype=torch.float64)
        table[:, 0::2], table[:, 1::2] = torch.sin(steps * turns), torch.cos(steps * turns)
        self.register_buffer("table", table)

    def forward(self, x):
        return self.table[: x.size(1)].unsqueeze(0)
"""
CLAUSES = ("positional_encoding.formula", "positional_encoding.far-positions")


def test_table_of_a_fixed_length_is_judged_up_to_that(tmp_path: Path) -> None:
    backend = adapted(tmp_path, "PositionalEncoding", CODE)
    assert backend.limits.length == 128
    assert not broken(backend, *CLAUSES)


@pytest.mark.parametrize("name", ["len_seq", "max_len"])
def test_length_by_a_known_name_is_no_limit(name: str, tmp_path: Path) -> None:
    backend = adapted(tmp_path, "PositionalEncoding", edited(CODE, ("span", name)))
    assert backend.limits.length is None
    assert not broken(backend, *CLAUSES)


def test_wrong_table_of_a_fixed_length_is_detected(tmp_path: Path) -> None:
    wrong = edited(CODE, ("torch.cos(steps * turns)", "torch.cos(steps / turns)"))
    assert broken(adapted(tmp_path, "PositionalEncoding", wrong), CLAUSES[0])


STACK = """
import torch
from torch import nn


class Attention(nn.Module):
    def __init__(self, config, causal=False):
        super().__init__()
        d, self.heads, self.causal = config.d_model, config.n_head, causal
        self.q, self.k = nn.Linear(d, d), nn.Linear(d, d)
        self.v, self.out = nn.Linear(d, d), nn.Linear(d, d)
        self.register_buffer("seen", torch.ones(config.max_len, config.max_len).bool().tril())

    def forward(self, query, key, value, mask=None):
        t, s = query.shape[1], key.shape[1]
        both = (self.q(query), self.k(key), self.v(value))
        q, k, v = (one.unflatten(-1, (self.heads, -1)).transpose(1, 2) for one in both)
        scores = q @ k.mT * q.shape[-1] ** -0.5
        scores = scores if mask is None else scores.masked_fill(mask == 0, -1e9)
        scores = scores.masked_fill(~self.seen[:t, :s], -1e9) if self.causal else scores
        return self.out((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))


class DecoderLayer(nn.Module):
    def __init__(self, config):
        super().__init__()
        d = config.d_model
        self.own, self.cross = Attention(config, causal=True), Attention(config)
        self.up, self.down = nn.Linear(d, 4 * d), nn.Linear(4 * d, d)
        self.first, self.second, self.third = nn.LayerNorm(d), nn.LayerNorm(d), nn.LayerNorm(d)

    def forward(self, x, memory, mask=None, memory_mask=None):
        x = self.first(x + self.own(x, x, x, mask))
        x = self.second(x + self.cross(x, memory, memory, memory_mask))
        return self.third(x + self.down(torch.relu(self.up(x))))


class Decoder(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.layers = nn.ModuleList([DecoderLayer(config) for _ in range(config.n_layer)])

    def forward(self, x, memory, mask=None, memory_mask=None):
        for layer in self.layers:
            x = layer(x, memory, mask, memory_mask)
        return x
"""


@pytest.mark.proof
def test_stack_with_a_mask_of_a_greatest_length_is_judged_up_to_that(tmp_path: Path) -> None:
    backend = adapted(tmp_path, "Decoder", STACK)
    assert backend.limits.length is not None
    verdict = judge(Bench.for_status(backend, effort=1.0), "decoder.formula")
    assert verdict.status is Status.PASS, verdict.message
