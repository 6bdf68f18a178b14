"""Layers built with an attention whose class by annotation has no call, but one that extends it."""

import pytest
from asking import is_asked_or_fails
from user_files import write_files

import attentest
from attentest.targets.members import members
from attentest.targets.models.size_names import sizes_named

LAYER = """
from abc import abstractmethod

import torch
from torch import nn


class AttentionOperator(nn.Module):
    @abstractmethod
    def forward(self, q, k, v, attn_mask=None):
        raise NotImplementedError


class ScaledDotProductAttention(AttentionOperator):
    def __init__(self, temperature: float, attn_dropout: float = 0.1):
        super().__init__()
        self.temperature, self.dropout = temperature, nn.Dropout(attn_dropout)

    def forward(self, q, k, v, attn_mask=None):
        scores = q @ k.mT / self.temperature
        if attn_mask is not None:
            scores = scores.masked_fill(attn_mask == 0, -1e9)
        return self.dropout(scores.softmax(-1)) @ v


class EncoderLayer(nn.Module):
    def __init__(self, attn_opt: AttentionOperator, d_model: int, n_heads: int, d_ff: int):
        super().__init__()
        self.attn_opt, self.n_heads = attn_opt, n_heads
        self.maps = nn.ModuleDict({one: nn.Linear(d_model, d_model) for one in "qkvo"})
        self.norm1, self.norm2 = nn.LayerNorm(d_model), nn.LayerNorm(d_model)
        self.up, self.down = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)

    def forward(self, x, mask=None):
        q, k, v = (self.maps[one](x).unflatten(-1, (self.n_heads, -1)).mT.mT for one in "qkv")
        q, k, v = (one.transpose(1, 2) for one in (q, k, v))
        mixed = self.attn_opt(q, k, v, mask).transpose(1, 2).flatten(2)
        x = self.norm1(x + self.maps["o"](mixed))
        return self.norm2(x + self.down(self.up(x).relu()))
"""


def checked(folder, text):
    target = str(write_files(folder, layer=text) / "layer.py:EncoderLayer")
    return attentest.check(target, clauses=["encoder.layer-formula"])


def test_the_class_with_a_call_is_the_part(tmp_path):
    report = checked(tmp_path, LAYER)
    assert report.conforms, str(report)
    assert report.compared == 1


@pytest.mark.proof
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("scores.softmax(-1)", "scores.softmax(-2)"),
        ("q @ k.mT / self.temperature", "q @ k.mT * self.temperature"),
        ("-1e9)", "-1e9).relu()"),
    ],
)
def test_mistakes_in_the_part_are_detected_or_asked_about(tmp_path, old, new):
    assert LAYER.count(old) == 1
    assert is_asked_or_fails(lambda: checked(tmp_path, LAYER.replace(old, new)))


def test_the_inner_width_has_a_name_beside_that_of_the_model():
    held = ["ntoken", "ninp", "nhead", "nhid", "nlayers"]
    assert next(sizes_named("ninp", held, "")) == "d_model"
    assert next(sizes_named("nhid", held, "")) == "d_ff"
    assert next(sizes_named("nhid", ["ntoken", "nhead", "nhid"], "")) == "d_model"


BASE = """
from torch import nn


class BaseLayer(nn.Module):
    def __init__(self, d_model: int):
        super().__init__()
        self.d_model = d_model


class FeedForward(BaseLayer):
    def __init__(self, d_model: int, d_ff: int):
        super().__init__(d_model)
        self.inner, self.outer = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)

    def forward(self, x):
        return self.outer(self.inner(x).relu())


class OtherLayer(nn.Module):
    pass
"""


def test_base_class_without_a_call_is_no_component(tmp_path):
    found = members(str(write_files(tmp_path, layer=BASE) / "layer.py"))
    assert {one.name: bool(one.component) for one in found} == {
        "BaseLayer": False,
        "FeedForward": True,
        "OtherLayer": True,
    }
