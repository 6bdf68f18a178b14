"""Decoder-only models that hide no later token: their family says what is meant."""

from pathlib import Path

import pytest
from mistaken_code import adapted, broken, edited

from attentest.targets.adapt import Unclear
from attentest.targets.adapt.components import squashed
from attentest.targets.language_models.construction.makers import NAMED
from attentest.targets.whole import AdaptedWhole

CODE = """
import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.q, self.k, self.v, self.o = (nn.Linear(width, width, bias=False) for _ in range(4))
        self.norm_1, self.norm_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x, hidden):
        h = self.norm_1(x)
        q, k, v = (
            one(h).unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for one in (self.q, self.k, self.v)
        )
        scores = q @ k.mT * q.shape[-1] ** -0.5
        if hidden is not None:
            scores = scores + hidden
        x = x + self.o((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))
        return x + self.down(torch.relu(self.up(self.norm_2(x))))


class SmolLM2(nn.Module):
    def __init__(self, vocab_size, width, heads, layers, max_len):
        super().__init__()
        self.tokens = nn.Embedding(vocab_size, width)
        self.positions = nn.Embedding(max_len, width)
        self.blocks = nn.ModuleList([Block(width, heads) for _ in range(layers)])
        self.norm, self.lm_head = nn.LayerNorm(width), nn.Linear(width, vocab_size, bias=False)

    def forward(self, input_ids, attention_mask=None):
        rows, length = input_ids.shape
        if attention_mask is not None:
            attention_mask = attention_mask.view(rows, 1, 1, length)
            attention_mask = attention_mask.masked_fill(attention_mask == 0, float("-inf"))
            attention_mask = attention_mask.masked_fill(attention_mask == 1, 0.0)
        x = self.tokens(input_ids) + self.positions(torch.arange(length))
        for block in self.blocks:
            x = block(x, attention_mask)
        return self.lm_head(self.norm(x))
"""
ORDERED = edited(
    CODE,
    ('float("-inf")', "-1e9"),
    (
        "if hidden is",
        "scores += torch.full(scores.shape, -torch.inf).triu(1)\n        if hidden is",
    ),
)
FORMULA = "language_model.formula"


@pytest.mark.proof
def test_model_of_a_family_that_hides_no_later_token_is_a_violation(tmp_path: Path) -> None:
    backend = adapted(tmp_path, "SmolLM2", CODE)
    assert isinstance(backend, AdaptedWhole)
    assert [one for one in backend.assumed if "later tokens are not hidden" in one]
    assert broken(backend, FORMULA)


@pytest.mark.proof
def test_the_same_model_with_a_triangle_is_correct(tmp_path: Path) -> None:
    backend = adapted(tmp_path, "SmolLM2", ORDERED)
    assert isinstance(backend, AdaptedWhole)
    assert broken(backend, FORMULA) == []


@pytest.mark.proof
def test_mask_that_nothing_uses_is_a_question_that_says_so(tmp_path: Path) -> None:
    code = edited(ORDERED, ("hidden is not None", "self.training"))
    with pytest.raises(Unclear, match="no number changes, whatever it hides"):
        adapted(tmp_path, "SmolLM2", code)


@pytest.mark.proof
def test_mask_of_later_tokens_that_is_inverted_is_a_question_that_says_so(tmp_path: Path) -> None:
    after = "torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)"
    fused = f"nn.functional.scaled_dot_product_attention(q, k, v, {after})"
    code = edited(CODE, ("(scores.softmax(-1) @ v)", fused), ("class SmolLM2", "class Model"))
    code += "\n    def generate(self, ids):\n        return self(ids)[:, -1].argmax(-1)\n"
    with pytest.raises(Unclear, match="its mask of later tokens is inverted"):
        adapted(tmp_path, "Model", code)


def test_layers_that_change_no_later_row_are_a_question_that_says_so(tmp_path: Path) -> None:
    with pytest.raises(Unclear, match="the logits of a token depend on that token alone"):
        adapted(tmp_path, "SmolLM2", edited(CODE, ("x = block(x", "block(x")))


@pytest.mark.parametrize(
    ("name", "whole"),
    [("DecoderOnlyArch", True), ("SmolLM2", True), ("DecoderOnlyBlock", False), ("GLM", True)],
)
def test_names_that_only_decoder_only_models_have(name: str, whole: bool) -> None:
    assert bool(NAMED.search(squashed(name))) is whole
