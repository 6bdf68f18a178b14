"""Questions about the code of packages: an option that answers them is named."""

from pathlib import Path

import pytest
from mistaken_code import adapted, asked_or_broken, broken
from proof import share

from attentest.targets.adapt import Unclear

LAYER = """
from torch import nn


class EncoderLayer(nn.Module):
    def __init__(self, d_model, heads, d_ff, variant=None):
        super().__init__()
        self.variant = variant
        self.attn = nn.MultiheadAttention(d_model, heads, batch_first=True)
        self.norm1 = nn.LayerNorm(d_model)
        self.norm2 = nn.LayerNorm(d_model)
        self.ff = nn.Sequential(nn.Linear(d_model, d_ff), nn.ReLU(), nn.Linear(d_ff, d_model))

    def forward(self, x, key_padding_mask=None):
        y = self.norm1(x) if self.variant == "pre" else x
        x = x + self.attn(y, y, y, key_padding_mask=key_padding_mask, need_weights=False)[0]
        x = self.norm1(x) if self.variant == "post" else x
        y = self.norm2(x) if self.variant == "pre" else x
        x = x + self.ff(y)
        return self.norm2(x) if self.variant == "post" else x
"""
ATTENTION = """
import math

import torch
from torch import nn


class TriangularCausalMask:
    def __init__(self, batch, length):
        ones = torch.ones((batch, 1, length, length), dtype=torch.bool)
        self.mask = torch.triu(ones, diagonal=1)


class FullAttention(nn.Module):
    def __init__(self, mask_flag=True, scale=None):
        super().__init__()
        self.mask_flag, self.scale = mask_flag, scale

    def forward(self, queries, keys, values, attn_mask):
        scale = self.scale or 1.0 / math.sqrt(queries.shape[-1])
        scores = torch.einsum("blhe,bshe->bhls", queries, keys)
        if self.mask_flag:
            if attn_mask is None:
                attn_mask = TriangularCausalMask(queries.shape[0], queries.shape[1])
            scores.masked_fill_(attn_mask.mask, -math.inf)
        weights = torch.softmax(scale * scores, dim=-1)
        return torch.einsum("bhls,bshd->blhd", weights, values), None
"""
SCHEDULE = """
import math


def get_schedule(step, warmup_steps, total_steps, num_cycles):
    if step < warmup_steps:
        return step / max(1, warmup_steps)
    progress = (step - warmup_steps) / max(1, total_steps - warmup_steps)
    return max(0.0, 0.5 * (1.0 + math.cos(math.pi * num_cycles * 2.0 * progress)))


def get_decay(step, warmup_steps, total_steps, power=2.0):
    if step < warmup_steps:
        return step / max(1, warmup_steps)
    return ((total_steps - step) / max(1, total_steps - warmup_steps)) ** power
"""


HEADS = """
from torch import nn


class EncoderBlock(nn.Module):
    def __init__(self, d_model, heads, d_ff):
        super().__init__()
        self.attn = nn.MultiheadAttention(d_model, heads, batch_first=True)
        self.norm1, self.norm2 = nn.LayerNorm(d_model), nn.LayerNorm(d_model)
        self.ff = nn.Sequential(nn.Linear(d_model, d_ff), nn.ReLU(), nn.Linear(d_ff, d_model))

    def forward(self, x, head_mask=None):
        y = self.attn(x, x, x, need_weights=False)[0]
        x = self.norm1(x + (y if head_mask is None else y * head_mask))
        return self.norm2(x + self.ff(x))
"""


@pytest.mark.proof
def test_factors_of_heads_are_no_mask(tmp_path: Path) -> None:
    backend = adapted(tmp_path, "EncoderBlock", HEADS)
    assert any("not given: head_mask" in one for one in backend.understood)
    assert broken(backend, "encoder.layer-formula") == []
    right, wrong = "self.norm1(x + (y", "self.norm1((y"
    assert asked_or_broken(tmp_path, "EncoderBlock", HEADS, right, wrong, "encoder.layer-formula")


@share(3, rest=1)
@pytest.mark.parametrize(
    ("name", "code", "option"),
    [
        ("EncoderLayer", LAYER, "--give variant=pre"),
        ("get_schedule", SCHEDULE, r"--give num_cycles=0.5 .*\(tried\)"),
        ("get_decay", SCHEDULE, r"--give power=1 .*\(tried\)"),
    ],
)
def test_option_that_gives_the_numbers_is_named(
    tmp_path: Path, name: str, code: str, option: str
) -> None:
    with pytest.raises(Unclear, match=option):
        adapted(tmp_path, name, code)


@pytest.mark.proof
def test_attention_with_a_mask_held_by_an_object_is_judged(tmp_path: Path) -> None:
    backend = adapted(tmp_path, "FullAttention", ATTENTION)
    assert broken(backend, "attention.formula", "attention.masking-exact") == []


@pytest.mark.proof
@share(3)
@pytest.mark.parametrize(
    ("name", "code", "right", "wrong"),
    [
        ("EncoderLayer", LAYER, "x + self.ff(y)", "self.ff(y)"),
        ("FullAttention", ATTENTION, "scale * scores", "scores"),
        ("get_schedule", SCHEDULE, "math.cos", "math.sin"),
        ("get_decay", SCHEDULE, "total_steps - step)", "total_steps - step + 3)"),
    ],
)
def test_no_option_is_named_for_a_mistake(
    tmp_path: Path, name: str, code: str, right: str, wrong: str
) -> None:
    assert right in code
    said = _question(tmp_path, name, code.replace(right, wrong))
    assert "the numbers are those of the reference (tried)" not in said
    assert "With variant=" not in said


def _question(folder: Path, name: str, code: str) -> str:
    try:
        adapted(folder, name, code)
    except Unclear as question:
        return str(question)
    return ""
