"""Layers whose name only hints at one: those with one mistake that no design makes are judged."""

from pathlib import Path

import pytest
from mistaken_code import adapted, broken
from proof import share

from attentest.judging.bench import Bench
from attentest.judging.judge import judge
from attentest.results.verdict import Status
from attentest.targets.adapt import Unclear

CODE = """
import math

import torch
from torch import nn


class Inner(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))
        return self.out((scores.softmax(-1) @ v).transpose(1, 2).reshape(b, t, c))


class WideBlock(nn.Module):
    def __init__(self, width, heads, hidden):
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attn = Inner(width, heads)
        self.up, self.down = nn.Linear(width, hidden), nn.Linear(hidden, width)

    def forward(self, x):
        h = x + self.attn(self.ln_1(x))
        y = self.down(torch.relu(self.up(self.ln_2(h))))
        return h + y
"""

POST = CODE.replace("h = x + self.attn(self.ln_1(x))", "h = self.ln_1(x + self.attn(x))")
POST = POST.replace("self.up(self.ln_2(h))", "self.up(h)").replace("h + y", "self.ln_2(h + y)")


@pytest.mark.parametrize("code", [CODE, POST])
def test_layer_without_a_mistake_conforms(code: str, tmp_path: Path) -> None:
    assert not broken(adapted(tmp_path, "WideBlock", code), "encoder.layer-formula")


@share(4, rest=1)
@pytest.mark.parametrize(
    ("code", "old", "new"),
    [
        (CODE, "torch.relu(self.up(self.ln_2(h)))", "self.up(self.ln_2(h))"),
        (CODE, "h + y", "x + y"),
        (CODE, "h + y", "y"),
        (CODE, "softmax(-1)", "softmax(-2)"),
        (CODE, "@ v).transpose(1, 2)", "@ v)"),
        (POST, "torch.relu(self.up(h))", "self.up(h)"),
        (POST, "self.ln_2(h + y)", "self.ln_2(x + y)"),
    ],
)
def test_layer_with_one_mistake_that_no_design_makes_is_a_violation(
    code: str, old: str, new: str, tmp_path: Path
) -> None:
    assert code.count(old) == 1
    backend = adapted(tmp_path, "WideBlock", code.replace(old, new))
    assert backend.choices["norm_placement"] == ("pre" if code is CODE else "post")
    verdict = judge(Bench.for_status(backend), "encoder.layer-formula")
    assert verdict.status is Status.VIOLATION


@pytest.mark.proof
@share(4)
@pytest.mark.parametrize(
    ("old", "new"),
    [
        (" / math.sqrt(q.size(-1))", ""),  # GPT-Neo, T5
        ("self.ln_2(h)", "self.ln_2(x)"),  # GPT-NeoX: sublayers side by side
        ("x + self.attn(self.ln_1(x))", "self.ln_1(x) + self.attn(self.ln_1(x))"),  # BLOOM
        ("h + y", "h + 0.5 * y"),  # branches that are scaled
    ],
)
def test_layer_of_another_design_is_a_question(old: str, new: str, tmp_path: Path) -> None:
    assert CODE.count(old) == 1
    with pytest.raises(Unclear):
        adapted(tmp_path, "WideBlock", CODE.replace(old, new))
