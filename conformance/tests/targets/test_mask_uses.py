"""Encoders whose layers use a mask as the contrary of what all other uses of it say."""

from pathlib import Path

import pytest
from mistaken_code import adapted, broken
from proof import share

from attentest.targets.adapt import Unclear
from attentest.targets.adapt.adaptation import Adapted

CODE = """
import torch
from torch import nn


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads, self.scale = heads, (width // heads) ** -0.5
        self.query, self.key, self.value, self.out = (nn.Linear(width, width) for _ in range(4))

    def forward(self, x, mask):
        q, k, v = (
            one(x).unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for one in (self.query, self.key, self.value)
        )
        scores = (q @ k.transpose(-2, -1)) * self.scale
        scores = scores.masked_fill(mask[:, None, None] == 0, -1e9)
        return self.out((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))


class Layer(nn.Module):
    def __init__(self, width, heads, inner):
        super().__init__()
        self.attention, self.norm1 = Attention(width, heads), nn.LayerNorm(width)
        self.inner, self.outer = nn.Linear(width, inner), nn.Linear(inner, width)
        self.norm2 = nn.LayerNorm(width)

    def forward(self, x, mask):
        x = self.norm1(x + self.attention(x, mask))
        return self.norm2(x + self.outer(self.inner(x).relu()))


class Classifier(nn.Module):
    def __init__(self, vocab_size, num_classes, d_model, n_heads, d_ff, n_layers):
        super().__init__()
        self.embed = nn.Embedding(vocab_size, d_model)
        self.layers = nn.ModuleList(Layer(d_model, n_heads, d_ff) for _ in range(n_layers))
        self.head = nn.Linear(d_model, num_classes)

    def forward(self, ids, attention_mask):
        x = self.embed(ids)
        for layer in self.layers:
            x = layer(x, attention_mask)
        weights = attention_mask.unsqueeze(-1).to(x.dtype)
        return self.head((x * weights).sum(1) / weights.sum(1).clamp(min=1))
"""
INVERTED = ("mask[:, None, None] == 0", "mask[:, None, None] == 1")
MEAN = "(x * weights).sum(1) / weights.sum(1).clamp(min=1)"
WITH_DEFAULT = (
    "attention_mask):\n        x = self.embed(ids)",
    "attention_mask=None):\n        x = self.embed(ids)\n        if attention_mask is None:\n"
    "            attention_mask = torch.{}_like(ids)",
)


def edited(*edits: tuple[str, str]) -> str:
    code = CODE
    for old, new in edits:
        assert old in code
        code = code.replace(old, new)
    return code


def default(maker: str) -> tuple[str, str]:
    return WITH_DEFAULT[0], WITH_DEFAULT[1].format(maker)


@share(2, rest=1)
@pytest.mark.parametrize(
    "edits",
    [[INVERTED], [INVERTED, (MEAN, "x[:, 0]"), default("ones")]],
    ids=["a mean over the tokens", "ones where no mask is given"],
)
def test_a_mask_that_the_layers_alone_invert_is_a_violation(
    edits: list[tuple[str, str]], tmp_path: Path
) -> None:
    backend = adapted(tmp_path, "Classifier", edited(*edits))
    assert isinstance(backend, Adapted)
    assert any("these use it as the contrary" in one for one in backend.assumed)
    assert not any("changes with padding" in one for one in backend.understood)
    assert broken(backend, "encoder.padding-invariance")


ADDED = (
    "        for layer in self.layers:\n            x = layer(x, attention_mask)",
    "        hides = (1.0 - attention_mask[:, None, None].to(x.dtype)) * -10000.0\n"
    "        for layer in self.layers:\n            x = layer(x, hides)",
)
FILLED = ("mask[:, None, None] == 0", "mask == 0")
SUMMED = ("scores.masked_fill(mask[:, None, None] == 0, -1e9)", "scores + mask")
FIRST = (MEAN, "x[:, 0]")


def test_numbers_to_be_added_that_the_layers_take_for_a_mask_are_a_violation(
    tmp_path: Path,
) -> None:
    backend = adapted(tmp_path, "Classifier", edited(ADDED, FILLED, FIRST))
    assert isinstance(backend, Adapted)
    assert any("these use it as the contrary" in one for one in backend.assumed)
    assert broken(backend, "encoder.padding-invariance")


def test_numbers_that_the_layers_add_conform(tmp_path: Path) -> None:
    backend = adapted(tmp_path, "Classifier", edited(ADDED, SUMMED, FIRST))
    assert broken(backend, "encoder.formula", "encoder.padding-invariance") == []


def test_numbers_of_another_mask_that_the_layers_invert_are_asked_about(tmp_path: Path) -> None:
    other = ADDED[0], ADDED[1].replace("(1.0 - attention_mask[", "(attention_mask[")
    with pytest.raises(Unclear, match="Say which one is meant"):
        adapted(tmp_path, "Classifier", edited(other, SUMMED, FIRST))


@share(4, rest=1)
@pytest.mark.parametrize(
    "edits",
    [[], [default("ones")], [(MEAN, "x[:, 0]"), default("ones")], [(MEAN, "x.amax(1)")]],
    ids=["a mean over the tokens", "ones", "the first token", "the maximum of all rows"],
)
def test_a_mask_that_is_used_as_it_is_named_conforms(
    edits: list[tuple[str, str]], tmp_path: Path
) -> None:
    backend = adapted(tmp_path, "Classifier", edited(*edits))
    assert broken(backend, "encoder.formula", "encoder.padding-invariance") == []


@share(2)
@pytest.mark.parametrize(
    "edits",
    [
        [INVERTED, ("attention_mask.unsqueeze(-1)", "(1 - attention_mask.long()).unsqueeze(-1)")],
        [INVERTED, (MEAN, "x[:, 0]")],
        [INVERTED, (MEAN, "x.mean(1)")],
        [INVERTED, (MEAN, "x[:, 0]"), default("zeros")],
        [INVERTED, default("zeros")],
    ],
    ids=["a mean of the others", "the first token", "a mean of all", "zeros", "zeros and a mean"],
)
def test_a_mask_of_which_other_uses_say_nothing_else_is_asked_about(
    edits: list[tuple[str, str]], tmp_path: Path
) -> None:
    with pytest.raises(Unclear, match="Say which one is meant"):
        adapted(tmp_path, "Classifier", edited(*edits))


NESTED = (
    ("class Classifier(nn.Module)", "class Body(nn.Module)"),
    ("        self.head = nn.Linear(d_model, num_classes)\n", ""),
    ("vocab_size, num_classes, d_model", "vocab_size, d_model"),
    (
        "        weights = attention_mask.unsqueeze(-1).to(x.dtype)\n"
        f"        return self.head({MEAN})\n",
        f"""        return x


class Classifier(nn.Module):
    def __init__(self, vocab_size, num_classes, d_model, n_heads, d_ff, n_layers):
        super().__init__()
        self.body = Body(vocab_size, d_model, n_heads, d_ff, n_layers)
        self.head = nn.Linear(d_model, num_classes)

    def forward(self, ids, attention_mask):
        x = self.body(ids, attention_mask)
        weights = attention_mask.unsqueeze(-1).to(x.dtype)
        return self.head({MEAN})
""",
    ),
)
UNNAMED = ("attention_mask", "attn_mask")


@share(4, rest=1)
@pytest.mark.parametrize("edits", [NESTED, (*NESTED, UNNAMED), (UNNAMED,)])
def test_a_mask_that_an_outer_class_pools_by_conforms(
    edits: tuple[tuple[str, str], ...], tmp_path: Path
) -> None:
    backend = adapted(tmp_path, "Classifier", edited(*edits))
    assert broken(backend, "encoder.formula", "encoder.padding-invariance") == []


def test_a_mask_that_an_outer_class_alone_pools_by_is_the_contrary(tmp_path: Path) -> None:
    backend = adapted(tmp_path, "Classifier", edited(INVERTED, *NESTED))
    assert isinstance(backend, Adapted)
    assert any("these use it as the contrary" in one for one in backend.assumed)


@pytest.mark.parametrize("edits", [NESTED, ()], ids=["of an outer class", "of its own"])
def test_a_mask_without_a_meaning_that_is_used_in_two_ways_is_a_question(
    edits: tuple[tuple[str, str], ...], tmp_path: Path
) -> None:
    with pytest.raises(Unclear, match="one of the two uses is a mistake"):
        adapted(tmp_path, "Classifier", edited(INVERTED, *edits, UNNAMED))


SMOOTHED = """
import torch
from torch import nn


class MultiHeadAttention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.query, self.key, self.value, self.out = (nn.Linear(width, width) for _ in range(4))

    def forward(self, x, mask=None):
        q, k, v = (
            one(x).unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for one in (self.query, self.key, self.value)
        )
        scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
        if mask is not None:
            scores = scores.masked_fill(mask == float("-inf"), -1e4)
        weights = scores.softmax(-1) + 1e-6
        weights = weights / weights.sum(-1, keepdim=True)
        return self.out((weights @ v).transpose(1, 2).flatten(2))
"""


def test_a_mask_of_infinities_that_nearly_hides_is_one_that_is_added(tmp_path: Path) -> None:
    backend = adapted(tmp_path, "MultiHeadAttention", SMOOTHED)
    assert isinstance(backend, Adapted)
    assert any(one.startswith("mask: added to the scores") for one in backend.understood)
    (message,) = broken(backend, "multi_head_attention.formula")
    assert "e-0" in message
