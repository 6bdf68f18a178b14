"""Layers that hide later positions by themselves, and take a mask of padding as well."""

from pathlib import Path

import pytest
from proof import share

import attentest
from attentest.judging.bench import Bench
from attentest.judging.judge import judge
from attentest.results.verdict import Status
from attentest.targets.adapt import Unclear

SOUND = """\
import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, n_embd, n_head, block_size):
        super().__init__()
        self.n_head = n_head
        self.c_attn, self.c_proj = nn.Linear(n_embd, 3 * n_embd), nn.Linear(n_embd, n_embd)
        self.ln_1, self.ln_2 = nn.LayerNorm(n_embd), nn.LayerNorm(n_embd)
        self.c_fc, self.c_out = nn.Linear(n_embd, 4 * n_embd), nn.Linear(4 * n_embd, n_embd)
        self.register_buffer("tril", torch.ones(block_size, block_size).tril())

    def forward(self, x, attention_mask=None):
        size = x.shape[1]
        q, k, v = (
            one.unflatten(-1, (self.n_head, -1)).transpose(1, 2)
            for one in self.c_attn(self.ln_1(x)).chunk(3, dim=-1)
        )
        scores = q @ k.transpose(-2, -1) / k.size(-1) ** 0.5
        scores = scores.masked_fill(self.tril[:size, :size] == 0, float("-inf"))
        if attention_mask is not None:
            scores = scores.masked_fill(attention_mask[:, None, None] == 0, float("-inf"))
        y = (scores.softmax(-1) @ v).transpose(1, 2).flatten(2)
        x = x + self.c_proj(y)
        return x + self.c_out(torch.relu(self.c_fc(self.ln_2(x))))
"""
ORDER = 'scores = scores.masked_fill(self.tril[:size, :size] == 0, float("-inf"))'


def written(folder: Path, old: str = "", new: str = "") -> str:
    assert old in SOUND
    (folder / "block.py").write_text(SOUND.replace(old, new) if old else SOUND)
    return str(folder / "block.py:Block")


def fails(
    target: str, clause: str = "layer-formula", effort: float = 0.3, **settled: object
) -> bool:
    backend = attentest.adapted(target, **settled)  # type: ignore[arg-type]
    bench = Bench.for_status(backend, effort=effort)
    return judge(bench, f"encoder.{clause}").status is not Status.PASS


def is_asked_or_fails(target: str, **settled: object) -> bool:
    try:
        return fails(target, effort=1.0, **settled)
    except Unclear:
        return True


def test_causal_layer_with_a_mask_of_padding_is_one_question(tmp_path):
    with pytest.raises(Unclear, match=r"hides later positions by itself; --give attention_mask=N"):
        attentest.adapted(written(tmp_path))


def test_causal_layer_is_judged_without_its_mask(tmp_path):
    assert not fails(written(tmp_path), given={"attention_mask": None})


def test_layer_that_hides_nothing_by_itself_is_judged_with_its_mask(tmp_path):
    target = written(tmp_path, ORDER, "pass")
    assert not fails(target)
    assert not fails(target, "padding-content")


@pytest.mark.proof
@share(2)
@pytest.mark.parametrize(
    ("old", "new"),
    [
        (".tril()", ".triu()"),
        ("k.size(-1) ** 0.5", "x.size(-1) ** 0.5"),
    ],
)
def test_mistakes_in_causal_layers_are_detected_or_asked_about(tmp_path, old, new):
    target = written(tmp_path, old, new)
    for settled in ({}, {"given": {"attention_mask": None}}):
        assert is_asked_or_fails(target, **settled)
