"""Masks of padding in decoder-only models: what they mean by the numbers, and by words."""

from pathlib import Path

import pytest
from mistaken_code import adapted

from attentest.targets.adapt import Unclear
from attentest.targets.adapt.reading import Contrary, Reading
from attentest.targets.language_models.calling import MASK_FORMS, Call
from attentest.targets.language_models.questions.polarity import (
    demand_documented_order,
    doubts_of_mask,
    forms_meant,
)

CODE = '''
import torch
from torch import nn
from torch.nn import functional as F


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.ln_1, self.ln_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x, seen):
        q, k, v = (
            one.unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for one in self.qkv(self.ln_1(x)).chunk(3, -1)
        )
        scores = q @ k.mT / q.shape[-1] ** 0.5
        weights = scores.masked_fill(~seen, -1e9).softmax(-1)
        x = x + self.out((weights @ v).transpose(1, 2).flatten(2))
        return x + self.down(F.gelu(self.up(self.ln_2(x))))


class GPT(nn.Module):
    def __init__(self, vocab_size: int, block_size: int, n_layer: int, n_head: int, n_embd: int):
        super().__init__()
        self.wte = nn.Embedding(vocab_size, n_embd)
        self.wpe = nn.Embedding(block_size, n_embd)
        self.h = nn.ModuleList(Block(n_embd, n_head) for _ in range(n_layer))
        self.ln_f = nn.LayerNorm(n_embd)
        self.head = nn.Linear(n_embd, vocab_size, bias=False)

    def forward(self, idx, attention_mask=None):
        """attention_mask: (batch, time), zero at padding."""
        t = idx.shape[1]
        seen = torch.ones(t, t, dtype=torch.bool).tril()
        if attention_mask is not None:
            seen = seen & attention_mask.bool()[:, None, None, :]
        x = self.wte(idx) + self.wpe.weight[:t]
        for block in self.h:
            x = block(x, seen)
        return self.head(self.ln_f(x))
'''


@pytest.mark.proof
def test_mask_that_contradicts_its_documentation_is_asked_about(tmp_path: Path) -> None:
    wrong = CODE.replace("seen & attention_mask.bool()", "seen & ~attention_mask.bool()")
    with pytest.raises(Unclear, match="By its documentation the attention_mask of GPT marks"):
        adapted(tmp_path, "GPT", wrong)


class _Plain:
    def forward(self, tokens, mask):
        return tokens


class _OfPadding(_Plain):
    """mask: True at padding."""


class _OfTokens(_Plain):
    """mask: 1 for real tokens, 0 for padding."""


HIDES, MARKS = Call("tokens", mask="mask", mask_form="~mask"), Call("tokens", mask="mask")


@pytest.mark.parametrize(
    ("model", "call"), [(_OfPadding, HIDES), (_OfTokens, MARKS), (_Plain, MARKS)]
)
def test_mask_that_its_words_do_not_contradict_is_read(model: type, call: Call) -> None:
    assert doubts_of_mask("M", model, call, Reading()) == []


def test_mask_of_padding_without_words_is_an_assumption() -> None:
    (said,) = doubts_of_mask("M", _Plain, HIDES, Reading())
    assert "assumed that mask marks the padding" in said


@pytest.mark.parametrize(("model", "call"), [(_OfPadding, MARKS), (_OfTokens, HIDES)])
def test_contrary_words_are_a_question_that_the_user_answers(model: type, call: Call) -> None:
    with pytest.raises(Contrary, match="Say which one is meant: --set mask=mask:"):
        doubts_of_mask("M", model, call, Reading())
    assert doubts_of_mask("M", model, call, Reading(mask="keep")) == []


def test_forms_are_those_of_the_meaning() -> None:
    assert forms_meant("") == list(MASK_FORMS.values())
    assert forms_meant("blocks") == ["~mask"]
    assert "~mask" not in forms_meant("keep")


@pytest.mark.parametrize(
    ("words", "asks"),
    [
        ("If no mask is specified, a causal mask\n            is used by default.", True),
        ("Later tokens are hidden by a causal mask, where seen is None.", True),
        ("seen: a causal mask, which every call needs.", False),
    ],
)
def test_documented_mask_of_later_tokens_is_made_where_none_is_given(words, asks):
    class Documented:
        def forward(self, tokens, seen=None): ...

    Documented.__doc__ = words
    call = Call("tokens", order="seen", order_form="seen")
    for reading in (Reading(anyway=True), Reading(given={"seen": None})):
        demand_documented_order("Documented", Documented, call, reading)
    if not asks:
        demand_documented_order("Documented", Documented, call, Reading())
        return
    with pytest.raises(Contrary, match="without seen its numbers are those of a model that hides"):
        demand_documented_order("Documented", Documented, call, Reading())
