"""Whole models whose sublayers hold their norms: no module is a layer, attention or a network."""

from pathlib import Path
from typing import Any

import pytest
from mistaken_code import adapted, edited

from attentest.judging.bench import Bench
from attentest.judging.judge import judge
from attentest.targets.adapt import Unclear

CODE = """
import torch
from torch import nn


class GatedUnit(nn.Module):
    def forward(self, x):
        x, gate = x.chunk(2, dim=-1)
        return x * nn.functional.gelu(gate)


def FeedForward(dim, mult=4):
    return nn.Sequential(
        nn.LayerNorm(dim),
        nn.Linear(dim, 2 * mult * dim, bias=False),
        GatedUnit(),
        nn.Linear(mult * dim, dim, bias=False),
    )


class Attention(nn.Module):
    def __init__(self, dim, heads, causal=False):
        super().__init__()
        self.heads, self.causal = heads, causal
        self.norm = nn.LayerNorm(dim)
        self.to_q = nn.Linear(dim, dim, bias=False)
        self.to_kv = nn.Linear(dim, 2 * dim, bias=False)
        self.to_out = nn.Linear(dim, dim, bias=False)

    def forward(self, x, context=None, mask=None):
        x = self.norm(x)
        context = x if context is None else context
        split = lambda t: t.unflatten(-1, (self.heads, -1)).transpose(1, 2)
        q, (k, v) = split(self.to_q(x)), map(split, self.to_kv(context).chunk(2, dim=-1))
        scores = q @ k.mT / q.shape[-1] ** 0.5
        lowest = -torch.finfo(scores.dtype).max
        if mask is not None:
            scores = scores.masked_fill(~mask[:, None, None, :], lowest)
        if self.causal:
            later = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)
            scores = scores.masked_fill(later, lowest)
        return self.to_out((scores.softmax(-1) @ v).transpose(1, 2).flatten(-2))


class Transformer(nn.Module):
    def __init__(self, *, dim, num_tokens, max_seq_len, enc_depth, dec_depth, heads=8):
        super().__init__()
        self.enc_emb, self.dec_emb = nn.Embedding(num_tokens, dim), nn.Embedding(num_tokens, dim)
        self.enc_pos = nn.Embedding(max_seq_len, dim)
        self.dec_pos = nn.Embedding(max_seq_len, dim)
        self.encoder = nn.ModuleList([
            nn.ModuleList([Attention(dim, heads), FeedForward(dim)]) for _ in range(enc_depth)
        ])
        self.decoder = nn.ModuleList([
            nn.ModuleList([Attention(dim, heads, True), Attention(dim, heads), FeedForward(dim)])
            for _ in range(dec_depth)
        ])
        self.enc_norm, self.dec_norm = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.to_logits = nn.Linear(dim, num_tokens, bias=False)

    def forward(self, src, tgt, mask=None, tgt_mask=None):
        x = self.enc_emb(src) + self.enc_pos(torch.arange(src.shape[1]))
        for attend, network in self.encoder:
            x = attend(x, mask=mask) + x
            x = network(x) + x
        memory = self.enc_norm(x)
        y = self.dec_emb(tgt) + self.dec_pos(torch.arange(tgt.shape[1]))
        for attend, cross, network in self.decoder:
            y = attend(y, mask=tgt_mask) + y
            y = cross(y, context=memory, mask=mask) + y
            y = network(y) + y
        return self.to_logits(self.dec_norm(y))
"""
CHOICES = {
    "norm_placement": "pre",
    "embedding_scale": "none",
    "feed_forward_gate": "gated",
    "activation": "gelu",
    "final_norm": "present",
}


def read_with(folder: Path, *edits: tuple[str, str]) -> Any:
    """Return the model with `edits`, as a backend."""
    return adapted(folder, "Transformer", edited(CODE, *edits))


OWN_HIDDEN = (".triu(1)", ".triu(0)")
UNSCALED = (" / q.shape[-1] ** 0.5", "")


@pytest.mark.proof
def test_choices_are_read_next_to_a_mistake_elsewhere(tmp_path: Path) -> None:
    read = read_with(tmp_path, OWN_HIDDEN)
    assert {name: read.choices[name] for name in CHOICES} == CHOICES


@pytest.mark.proof
@pytest.mark.parametrize(
    ("edit", "line"),
    [(OWN_HIDDEN, "later = torch.ones("), (UNSCALED, "return self.to_out((scores.softmax")],
    ids=["own-position-hidden", "no-scale"],
)
def test_line_of_a_mistake_where_choices_are_read_of_parts(
    edit: tuple[str, str], line: str, tmp_path: Path
) -> None:
    verdict = judge(Bench(read_with(tmp_path, edit), shrink=False, effort=0.3), "model.formula")
    assert verdict.status == "violation"
    assert verdict.location is not None
    assert verdict.location.code.startswith(line)


@pytest.mark.proof
def test_choices_of_the_correct_model_are_the_same(tmp_path: Path) -> None:
    read = read_with(tmp_path)
    assert {name: read.choices[name] for name in CHOICES} == CHOICES
    assert judge(Bench.for_status(read, effort=0.3), "model.formula").status == "pass"


PLACED = "sines(self.first + torch.arange({}.shape[1]), self.dim)"
SINES = """
def sines(places, dim):
    angle = places[:, None] / 10000 ** (torch.arange(0, dim, 2) / dim)
    return torch.stack([angle.sin(), angle.cos()], -1).flatten(-2)


class GatedUnit"""
PADS = (
    ("class GatedUnit", SINES),
    ("enc_depth, dec_depth, heads=8):", "enc_depth, dec_depth, pad_idx=0, heads=8):"),
    ("self.enc_pos = nn.Embedding(max_seq_len, dim)", "self.first = pad_idx + 1"),
    ("self.dec_pos = nn.Embedding(max_seq_len, dim)", "self.dim = dim"),
    ("self.enc_pos(torch.arange(src.shape[1]))", PLACED.format("src")),
    ("self.dec_pos(torch.arange(tgt.shape[1]))", PLACED.format("tgt")),
)


@pytest.mark.proof
def test_positions_behind_the_pad_id_are_asked_about_next_to_a_mistake(tmp_path: Path) -> None:
    with pytest.raises(Unclear, match="begin behind the id of padding"):
        read_with(tmp_path, *PADS, OWN_HIDDEN)
