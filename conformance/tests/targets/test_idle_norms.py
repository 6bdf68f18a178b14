"""Encoders that hold a norm and do not call it: the rest of their numbers confirms the reading."""

from pathlib import Path

import pytest
from mistaken_code import adapted, broken
from proof import share

from attentest.targets.adapt import Unclear

CODE = """
import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, width, heads, inner):
        super().__init__()
        self.attention = nn.MultiheadAttention(width, heads, batch_first=True)
        self.norm1 = nn.LayerNorm(width, eps=1e-12)
        self.up, self.down = nn.Linear(width, inner), nn.Linear(inner, width)
        self.norm2 = nn.LayerNorm(width, eps=1e-12)

    def forward(self, x, pads):
        x = self.norm1(x + self.attention(x, x, x, key_padding_mask=pads)[0])
        return self.norm2(x + self.down(nn.functional.gelu(self.up(x))))


class Tagger(nn.Module):
    def __init__(self, vocab_size, width, heads, inner, layers, labels):
        super().__init__()
        self.words = nn.Embedding(vocab_size, width)
        self.layers = nn.ModuleList(Block(width, heads, inner) for _ in range(layers))
        self.head = nn.Linear(width, labels)

    def forward(self, ids):
        x = self.words(ids)
        for layer in self.layers:
            x = layer(x, ids == 0)
        return self.head(x)
"""
FIRST = ("self.norm1(x + self.attention(x, x, x, key_padding_mask=pads)[0])", "norm1")
SECOND = ("self.norm2(x + self.down(nn.functional.gelu(self.up(x))))", "norm2")
PRE = (
    ("self.norm1(x + self.attention(x, x, x, key_padding_mask=pads)[0])",
     "x + self.attention(h := self.norm1(x), h, h, key_padding_mask=pads)[0]"),
    ("self.norm2(x + self.down(nn.functional.gelu(self.up(x))))",
     "x + self.down(nn.functional.gelu(self.up(self.norm2(x))))"),
)  # fmt: skip
HELD = "is held and not called"


@pytest.mark.proof
@share(2)
@pytest.mark.parametrize(("sublayer", "norm"), [FIRST, SECOND])
def test_norms_that_are_not_called_are_violations(sublayer: str, norm: str, tmp_path: Path) -> None:
    bare = sublayer.removeprefix(f"self.{norm}")
    assert bare != sublayer
    backend = adapted(tmp_path, "Tagger", CODE.replace(sublayer, bare))
    assert any(f"{norm} {HELD}" in one for one in backend.assumed), backend.assumed
    assert backend.choices["activation"] == "gelu"
    assert broken(backend, "encoder.formula")


@pytest.mark.proof
@pytest.mark.parametrize(("idle", "called"), [("norm1", "norm2"), ("norm2", "norm1")])
def test_the_norm_of_another_sublayer_is_a_violation(
    idle: str, called: str, tmp_path: Path
) -> None:
    backend = adapted(tmp_path, "Tagger", CODE.replace(f"self.{idle}(x", f"self.{called}(x"))
    said = f"layers.0.{idle} {HELD}: layers.0.{called} is called in its place"
    assert any(said in one for one in backend.assumed), backend.assumed
    assert broken(backend, "encoder.formula")


@share(2, rest=1)
@pytest.mark.parametrize("placed", ["post", "pre"])
def test_sound_encoders_call_all_their_norms(placed: str, tmp_path: Path) -> None:
    code = CODE
    for post, pre in PRE if placed == "pre" else ():
        code = code.replace(post, pre)
    backend = adapted(tmp_path, "Tagger", code)
    assert not any(HELD in one for one in backend.assumed)
    assert backend.choices["norm_placement"] == placed
    assert broken(backend, "encoder.formula") == []


@pytest.mark.exhaustive
def test_a_design_with_a_norm_that_is_not_held_is_no_such_mistake(tmp_path: Path) -> None:
    scaled = CODE.replace("x + self.down(", "x + 0.5 * self.down(")
    assert scaled != CODE
    with pytest.raises(Unclear) as question:
        adapted(tmp_path, "Tagger", scaled)
    assert HELD not in str(question.value)


@pytest.mark.proof
def test_a_layer_that_is_guessed_is_judged_where_it_calls_the_norm_of_another_sublayer(
    tmp_path: Path,
) -> None:
    code = CODE
    for old, new in PRE:
        code = code.replace(old, new)
    code = code.replace("self.up(self.norm2(x))", "self.up(self.norm1(x))")
    code = code.replace("x, pads", "x").replace(", key_padding_mask=pads", "")
    backend = adapted(tmp_path, "Block", code)
    assert any(f"norm2 {HELD}" in one for one in backend.assumed), backend.assumed
    assert broken(backend, "encoder.layer-formula")


@pytest.mark.proof
def test_the_epsilon_beside_a_norm_that_is_not_called_is_the_closest_one(tmp_path: Path) -> None:
    sublayer, norm = SECOND
    code = CODE.replace(sublayer, sublayer.removeprefix(f"self.{norm}"))
    assert adapted(tmp_path, "Tagger", code).choices["norm_epsilon"] == 1e-12


@pytest.mark.proof
def test_norms_in_a_list_have_their_places_where_one_is_not_called(tmp_path: Path) -> None:
    code = CODE.replace("self.norm1 = nn", "self.norms = nn.ModuleList([nn").replace(
        "eps=1e-12)\n        self.up",
        "eps=1e-12), nn.LayerNorm(width, eps=1e-12)])\n        self.up",
    )
    code = code.replace("        self.norm2 = nn.LayerNorm(width, eps=1e-12)\n", "")
    right = code.replace("self.norm1(", "self.norms[0](").replace("self.norm2(", "self.norms[1](")
    wrong = right.replace("self.norms[1](", "self.norms[0](")
    assert wrong != right
    for source in (right, wrong):
        read = adapted(tmp_path, "Tagger", source)
        assert '"layers.*.self_attention_norm.gain": "layers.*.norms.0.weight"' in read.written()
