"""Masks that are objects, of which code reads one attribute."""

from pathlib import Path

import pytest
from mistaken_code import adapted, asked, broken, edited

CODE = """
import torch
from torch import nn


class TriangularMask:
    def __init__(self, samples, length):
        self._mask = torch.ones(samples, 1, length, length, dtype=torch.bool).triu(1)

    @property
    def mask(self):
        return self._mask


class FullAttention(nn.Module):
    def __init__(self, mask_flag=True, scale=None, attention_dropout=0.1, output_attention=False):
        super().__init__()
        self.scale, self.mask_flag = scale, mask_flag
        self.output_attention = output_attention
        self.dropout = nn.Dropout(attention_dropout)

    def forward(self, queries, keys, values, attn_mask):
        B, L, H, E = queries.shape
        scale = self.scale or E**-0.5
        scores = torch.einsum("blhe,bshe->bhls", queries, keys)
        if self.mask_flag:
            if attn_mask is None:
                attn_mask = TriangularMask(B, L)
            scores.masked_fill_(attn_mask.mask, float("-inf"))
        weights = self.dropout(torch.softmax(scale * scores, dim=-1))
        result = torch.einsum("bhls,bshd->blhd", weights, values).contiguous()
        return (result, weights) if self.output_attention else (result, None)
"""
SLUGS = ("attention.formula", "attention.masked-keys-ignored", "attention.masking-exact")


def test_mask_in_an_attribute_is_judged(tmp_path: Path) -> None:
    assert not broken(adapted(tmp_path, "FullAttention", CODE), *SLUGS)


def test_written_adapter_makes_the_object_of_a_mask(tmp_path: Path) -> None:
    text = adapted(tmp_path, "FullAttention", CODE).written()
    space: dict[str, object] = {}
    exec(compile(text, "adapter", "exec"), space)
    assert not broken(space["backend"], *SLUGS)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ('float("-inf")', "0.0"),
        ("E**-0.5", "E**0.5"),
        ("scale * scores, dim=-1", "scale * scores, dim=-2"),
    ],
)
def test_mistakes_with_a_mask_in_an_attribute_are_detected(
    tmp_path: Path, right: str, wrong: str
) -> None:
    mistaken = edited(CODE, (right, wrong))
    assert broken(adapted(tmp_path, "FullAttention", mistaken, component="attention"), *SLUGS)


LAYER = f"""{CODE}

class AttentionLayer(nn.Module):
    def __init__(self, attention, d_model, n_heads):
        super().__init__()
        self.inner_attention, self.n_heads = attention, n_heads
        self.query, self.key = nn.Linear(d_model, d_model), nn.Linear(d_model, d_model)
        self.value, self.out = nn.Linear(d_model, d_model), nn.Linear(d_model, d_model)

    def forward(self, queries, keys, values, attn_mask):
        B, L, _ = queries.shape
        parts = (self.query(queries), self.key(keys), self.value(values))
        q, k, v = (one.view(B, one.shape[1], self.n_heads, -1) for one in parts)
        found, weights = self.inner_attention(q, k, v, attn_mask)
        return self.out(found.view(B, L, -1)), weights


class EncoderLayer(nn.Module):
    def __init__(self, attention, d_model, d_ff):
        super().__init__()
        self.attention = attention
        self.inner, self.outer = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)
        self.norm1, self.norm2 = nn.LayerNorm(d_model), nn.LayerNorm(d_model)

    def forward(self, x, attn_mask=None):
        x = self.norm1(x + self.attention(x, x, x, attn_mask=attn_mask)[0])
        return self.norm2(x + self.outer(self.inner(x).relu()))
"""
OF_LAYERS = ("multi_head_attention.formula", "attention.masked-keys-ignored")


@pytest.mark.parametrize("name", ["FullAttention", "AttentionLayer"])
def test_mask_in_an_attribute_that_is_used_the_wrong_way_round_is_asked_about(
    tmp_path: Path, name: str
) -> None:
    mistaken = edited(LAYER, ("(attn_mask.mask,", "(~attn_mask.mask,"))
    assert "the wrong way round" in asked_of(tmp_path, name, mistaken)


def test_attention_that_is_given_to_a_layer_says_how_its_mask_is_held(tmp_path: Path) -> None:
    assert not broken(adapted(tmp_path, "AttentionLayer", LAYER), *OF_LAYERS)


def test_wrong_layer_around_given_attention_is_detected(tmp_path: Path) -> None:
    mistaken = edited(LAYER, ("self.key(keys), self.value", "self.key(keys), self.key"))
    assert broken(adapted(tmp_path, "AttentionLayer", mistaken), *OF_LAYERS)


def test_layer_gets_attention_with_heads_that_gets_attention(tmp_path: Path) -> None:
    question = asked_of(tmp_path, "EncoderLayer", LAYER)
    assert "--give attn_mask=None" in question
    read = adapted(tmp_path, "EncoderLayer", LAYER, given={"attn_mask": None})
    assert not broken(read, "encoder.layer-formula")


def asked_of(folder: Path, name: str, source: str) -> str:
    """Return the question about `name` in a file with `source`."""
    (folder / "own.py").write_text(source)
    return asked(f"{folder / 'own.py'}:{name}")
