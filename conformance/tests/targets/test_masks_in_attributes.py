"""Masks that are objects, of which code reads one attribute."""

from pathlib import Path

import pytest
from mistaken_code import adapted, broken, edited

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
