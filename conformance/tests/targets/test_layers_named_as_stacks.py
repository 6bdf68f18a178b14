"""Classes that are called Encoder, Decoder or AttentionBlock and are one layer of a stack."""

import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest
from mistaken_code import adapted, broken, edited

from attentest.targets.adapt.encoders.sequences import as_layer
from attentest.targets.members import members

CODE = """
import math

import torch
from torch import nn


class MultiHeadAttention(nn.Module):
    def __init__(self, heads, d_model):
        super().__init__()
        self.heads = heads
        self.q, self.k, self.v, self.o = (nn.Linear(d_model, d_model) for _ in range(4))

    def forward(self, query, key, value, mask):
        q, k, v = (
            part(x).unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for part, x in ((self.q, query), (self.k, key), (self.v, value))
        )
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
        scores = scores.masked_fill(mask == 0, -1e9)
        return self.o((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))


class FeedForward(nn.Module):
    def __init__(self, d_model, inner):
        super().__init__()
        self.first, self.second = nn.Linear(d_model, inner), nn.Linear(inner, d_model)

    def forward(self, x):
        return self.second(self.first(x).relu())


class Encoder(nn.Module):
    def __init__(self, heads, d_model, inner):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(d_model), nn.LayerNorm(d_model)
        self.attention = MultiHeadAttention(heads, d_model)
        self.network = FeedForward(d_model, inner)

    def forward(self, x, mask):
        x = self.norm1(x + self.attention(x, x, x, mask))
        return self.norm2(x + self.network(x))
"""


def test_a_layer_that_is_named_as_a_stack_is_judged_as_a_layer(tmp_path: Path) -> None:
    backend = adapted(tmp_path, "Encoder", CODE)
    assert "encoder_layer" in backend.recipes  # type: ignore[attr-defined]
    assert not broken(backend, "encoder.layer-formula")
    found = {one.name: one.component for one in members(str(tmp_path / "own.py")) or ()}
    assert found["Encoder"] == "encoder_layer"


def test_network_of_a_layer_that_is_named_as_a_stack_may_be_of_no_class(tmp_path: Path) -> None:
    plain = CODE.replace(
        "FeedForward(d_model, inner)",
        "nn.Sequential(nn.Linear(d_model, inner), nn.ReLU(), nn.Linear(inner, d_model))",
    )
    assert "encoder_layer" in adapted(tmp_path, "Encoder", plain).recipes  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("self.norm1(x + self.attention", "self.norm1(self.attention"),
        ("self.norm2(x + self.network(x))", "self.norm2(x + self.network(self.norm1(x)))"),
    ],
    ids=["no residual", "norm twice"],
)
def test_mistakes_of_a_layer_that_is_named_as_a_stack_are_found(
    right: str, wrong: str, tmp_path: Path
) -> None:
    assert broken(adapted(tmp_path, "Encoder", CODE.replace(right, wrong)), "encoder.layer-formula")


BLOCK = CODE.replace("class Encoder", "class AttentionBlock")


def test_block_of_attention_that_holds_a_network_is_judged_as_a_layer(tmp_path: Path) -> None:
    backend = adapted(tmp_path, "AttentionBlock", BLOCK)
    assert "encoder_layer" in backend.recipes  # type: ignore[attr-defined]
    assert not broken(backend, "encoder.layer-formula")
    found = {one.name: one.component for one in members(str(tmp_path / "own.py")) or ()}
    assert found["AttentionBlock"] == "encoder_layer"


def test_block_of_attention_without_a_network_is_attention(tmp_path: Path) -> None:
    alone = BLOCK.replace("FeedForward(d_model, inner)", "nn.Identity()")
    adapted_as = as_layer("multi_head_attention", _class_in(tmp_path, alone), "AttentionBlock")
    assert adapted_as == "multi_head_attention"
    whole = _class_in(tmp_path, BLOCK)
    assert as_layer("multi_head_attention", whole, "SelfAttentionLayer") == "encoder_layer"
    assert as_layer("multi_head_attention", whole, "SelfAttention") == "multi_head_attention"


def test_mistake_of_a_block_of_attention_is_found(tmp_path: Path) -> None:
    wrong = edited(BLOCK, ("self.norm1(x + self.attention", "self.norm1(self.attention"))
    assert broken(adapted(tmp_path, "AttentionBlock", wrong), "encoder.layer-formula")


def _class_in(folder: Path, source: str) -> object:
    file = folder / "block.py"
    file.write_text(source)
    spec = spec_from_file_location("block", file)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules["block"] = module
    spec.loader.exec_module(module)
    return module.AttentionBlock
