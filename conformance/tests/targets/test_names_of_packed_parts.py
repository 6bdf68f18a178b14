"""Packed maps whose parts have names in the code."""

from pathlib import Path

import pytest
from folders import SUPPORT
from mistaken_code import adapted, broken

NETWORK = """
import torch
from torch import nn


class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff):
        super().__init__()
        self.wi = nn.Linear(d_model, 2 * d_ff, bias=False)
        self.wo = nn.Linear(d_ff, d_model, bias=False)

    def forward(self, x):
        HALVES = self.wi(x).chunk(2, dim=-1)
        return self.wo(nn.functional.silu(FIRST) * SECOND)
"""


@pytest.mark.parametrize(
    ("halves", "activated", "other", "inner"),
    [
        ("gate, up", "up", "gate", "up"),
        ("up, gate", "up", "gate", "up"),
        ("gate, up", "gate", "up", ""),
        ("value, gate", "gate", "value", ""),
        ("x, gate", "x", "gate", ""),  # the first name says nothing
        ("a, b", "a", "b", ""),
    ],
)
def test_halves_with_the_names_of_each_other_are_an_assumption(
    tmp_path: Path, halves: str, activated: str, other: str, inner: str
) -> None:
    source = NETWORK.replace("HALVES", halves).replace("FIRST", activated).replace("SECOND", other)
    backend = adapted(tmp_path, "FeedForward", source)
    said = [one for one in backend.assumed if "another half of wi is called" in one]
    assert [one.split()[2] for one in said] == [inner] * bool(inner)
    assert broken(backend, "feed_forward.formula") == []


def test_halves_of_decoder_only_models_are_read_as_well(tmp_path: Path) -> None:
    source = (SUPPORT / "wild_language_models" / "wrapped.py").read_text()
    named = source.replace("x, gate = self", "gate, up = self").replace("x * F.gelu(gate)", "FORM")
    for form, number in (("gate * F.gelu(up)", 1), ("up * F.gelu(gate)", 0)):
        backend = adapted(tmp_path, "TransformerWrapper", named.replace("FORM", form))
        said = [one for one in backend.assumed if "assumed that up is the gate of GEGLU" in one]
        assert len(said) == number


def test_another_order_of_queries_keys_and_values_is_an_assumption(tmp_path: Path) -> None:
    source = (SUPPORT / "wild_language_models" / "nano.py").read_text()
    assert source.count("q, k, v = self.c_attn(x).split") == 1
    other = source.replace("q, k, v = self.c_attn(x).split", "q, v, k = self.c_attn(x).split")
    for code, number in ((source, 0), (other, 1)):
        backend = adapted(tmp_path, "GPT", code)
        said = [one for one in backend.assumed if "holds query, value, key, one after" in one]
        assert len(said) == number
