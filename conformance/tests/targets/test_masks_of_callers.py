"""Decoder-only models whose caller gives the mask of later tokens."""

from pathlib import Path

import pytest
from mistaken_code import adapted, broken
from proof import share

from attentest.targets.adapt import Unclear

CODE = """
import torch
from torch import nn


class NAME(nn.Module):
    def __init__(self, vocab_size, d_model, n_heads, d_ff, n_layers, max_len=64):
        super().__init__()
        self.tokens = nn.Embedding(vocab_size, d_model)
        self.positions = nn.Embedding(max_len, d_model)
        layer = nn.TransformerEncoderLayer(d_model, n_heads, d_ff, batch_first=True)
        self.layers = nn.TransformerEncoder(layer, n_layers, enable_nested_tensor=False)
        self.head = nn.Linear(d_model, vocab_size)

    def forward(self, ids, ARGUMENT):
        '''Return logits for ids; see causal_mask.'''
        x = self.tokens(ids) + self.positions(torch.arange(ids.shape[1], device=ids.device))
        return self.head(self.layers(x, HIDDEN))
"""
FORMULA = "language_model.formula"
MISSING = "of which later tokens are not hidden"
GIVEN = "every call gets a mask of later tokens as"
KEPT = "mask=None if seen is None else ~seen"


def source(name: str, argument: str, hidden: str) -> str:
    return CODE.replace("NAME", name).replace("ARGUMENT", argument).replace("HIDDEN", hidden)


@share(4, rest=1)
@pytest.mark.parametrize(
    ("argument", "hidden"),
    [
        ("src_mask=None", "mask=src_mask"),
        ("attn_mask=None", "mask=None if attn_mask is None else ~attn_mask"),
        ("mask=None", "mask=None if mask is None else mask[0, 0] == 0"),
        ("causal=False", "mask=torch.ones(2 * ids.shape[1:]).triu(1).bool() if causal else None"),
    ],
)
def test_a_mask_of_later_tokens_may_be_given(argument: str, hidden: str, tmp_path: Path) -> None:
    backend = adapted(tmp_path, "WordGPT", source("WordGPT", argument, hidden))
    assert any(GIVEN in one for one in backend.assumed), backend.assumed
    assert broken(backend, FORMULA) == []


@pytest.mark.proof
@pytest.mark.parametrize(
    ("name", "argument"),
    [("WordGPT", "src_mask=None"), ("WordGPT", "pad_mask=None"), ("WordLM", "labels=None")],
)
def test_a_mask_that_reaches_no_layer_is_a_violation(
    name: str, argument: str, tmp_path: Path
) -> None:
    backend = adapted(tmp_path, name, source(name, argument, "mask=None"))
    assert any(MISSING in one for one in backend.assumed), backend.assumed
    assert broken(backend, FORMULA)


@pytest.mark.proof
@pytest.mark.parametrize(
    ("name", "argument", "hidden"),
    [
        ("WordGPT", "mask=None", "mask=mask.later if mask else None"),
        ("WordGPT", "labels=None, causal: bool = False", "mask=None"),
        ("ProteinLM", "labels=None", "mask=None"),
    ],
)
def test_other_ways_to_hide_later_tokens_are_asked_about(
    name: str, argument: str, hidden: str, tmp_path: Path
) -> None:
    code = source(name, argument, hidden)
    with pytest.raises(Unclear, match=MISSING):
        adapted(tmp_path, name, code.replace("causal_mask", "forward") if "LM" in name else code)
