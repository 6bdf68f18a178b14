"""Calls of decoder-only models: the last token alone, masks of pairs, labels that hide tokens."""

from pathlib import Path

import pytest
from mistaken_code import adapted, asked_or_broken, broken

from attentest.targets.adapt import Unclear
from attentest.targets.language_models.construction.code import may_be_none, only_stored
from attentest.targets.language_models.verifying import NO_PADDING, refused
from attentest.targets.whole import AdaptedWhole

SOURCE = """
import torch
from torch import nn


class Attention(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.heads = config.n_head
        self.qkv = nn.Linear(config.n_embd, 3 * config.n_embd)
        self.out = nn.Linear(config.n_embd, config.n_embd)

    def forward(self, x, mask):
        b, t, d = x.shape
        split = self.qkv(x).view(b, t, 3, self.heads, d // self.heads)
        q, k, v = split.permute(2, 0, 3, 1, 4)
        scores = q @ k.transpose(-2, -1) / (d // self.heads) ** 0.5
        if mask is not None:
            scores = scores + mask
        return self.out((scores.softmax(-1) @ v).transpose(1, 2).reshape(b, t, d))


class Block(nn.Module):
    def __init__(self, config, inner):
        super().__init__()
        self.attention = Attention(config)
        self.first, self.second = nn.LayerNorm(config.n_embd), nn.LayerNorm(config.n_embd)
        width = 4 * config.n_embd if inner is None else inner
        self.up, self.down = nn.Linear(config.n_embd, width), nn.Linear(width, config.n_embd)

    def forward(self, x, mask):
        x = x + self.attention(self.first(x), mask)
        return x + self.down(torch.relu(self.up(self.second(x))))


class GPT(nn.Module):
    def __init__(self, config, tokenizer):
        super().__init__()
        self.tokenizer = tokenizer
        self.tokens = nn.Embedding(config.vocab_size, config.n_embd)
        self.places = nn.Embedding(config.block_size, config.n_embd)
        self.blocks = nn.ModuleList(
            Block(config, inner=config.wide) for _ in range(config.n_layer)
        )
        self.norm = nn.LayerNorm(config.n_embd)
        self.head = nn.Linear(config.n_embd, config.vocab_size, bias=False)

    def forward(self, ids, attention_mask=None):
        later = torch.full(2 * ids.shape[1:], float("-inf"), dtype=self.norm.weight.dtype)
        mask = later.triu(1) if attention_mask is None else attention_mask
        x = self.tokens(ids) + self.places(torch.arange(ids.shape[1]))
        for block in self.blocks:
            x = block(x, mask)
        return self.head(self.norm(x))
"""
FORMULA = "language_model.formula"
LAST = ("self.head(self.norm(x))", "self.head(self.norm(x)[:, -1])")
LAST_NORMED = ("self.head(self.norm(x))", "self.head(self.norm(x[:, -1]))")
LABELS = [
    ("ids, attention_mask=None", "ids, targets=None"),
    ("later.triu(1) if attention_mask is None else attention_mask", "None"),
]


def edited(*edits: tuple[str, str]) -> str:
    source = SOURCE
    for old, new in edits:
        assert old in source
        source = source.replace(old, new)
    return source


@pytest.mark.proof
def test_mask_of_pairs_and_arguments_that_are_stored_are_assumptions(tmp_path: Path) -> None:
    backend = adapted(tmp_path, "GPT", SOURCE)
    assert isinstance(backend, AdaptedWhole)
    said = "\n".join(backend.assumed)
    assert f"attention_mask is left out: {NO_PADDING}" in said
    assert "assumed tokenizer=None" in said
    assert "wide=sizes.d_ff" in "\n".join(backend.understood)
    assert broken(backend, FORMULA, "language_model.causality") == []


@pytest.mark.proof
@pytest.mark.parametrize("last", [LAST, LAST_NORMED])
def test_model_that_returns_the_last_step_is_judged_at_every_step(
    tmp_path: Path, last: tuple[str, str]
) -> None:
    backend = adapted(tmp_path, "GPT", edited(last))
    assert isinstance(backend, AdaptedWhole)
    assert "the logits of the last token alone" in "\n".join(backend.assumed)
    assert broken(backend, FORMULA, "language_model.gradient") == []


@pytest.mark.proof
@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("later.triu(1)", "later.triu(2)"),
        ("x = x + self.attention(", "x = self.attention("),
        ("** 0.5", "** 1.0"),
    ],
)
def test_mistake_of_a_last_step_is_no_pass(tmp_path: Path, right: str, wrong: str) -> None:
    assert asked_or_broken(tmp_path, "GPT", edited(LAST), right, wrong, FORMULA)


LAST_OR_ALL = (
    "return self.head(self.norm(x))",
    "x = self.norm(x)\n"
    "        if targets is None:\n"
    "            return self.head(x[:, [-1]])\n"
    "        return self.head(x)",
)


@pytest.mark.proof
def test_other_logits_where_labels_are_given_are_no_pass(tmp_path: Path) -> None:
    masked = ("mask = None", "mask = later.triu(1)")
    code = edited(*LABELS, masked, LAST_OR_ALL)
    assert broken(adapted(tmp_path, "GPT", code), FORMULA) == []
    for wrong in ("self.head(x) / 7", "self.head(x.flip(0))"):
        assert asked_or_broken(tmp_path, "GPT", code, "self.head(x)\n", f"{wrong}\n", FORMULA)


@pytest.mark.proof
def test_mask_that_labels_alone_bring_is_asked_about(tmp_path: Path) -> None:
    labels = edited(*LABELS, ("mask = None", "mask = None if targets is None else later.triu(1)"))
    with pytest.raises(Unclear, match="of which later tokens are not hidden"):
        adapted(tmp_path, "GPT", labels)


@pytest.mark.proof
def test_mask_that_labels_do_not_bring_is_broken(tmp_path: Path) -> None:
    assert broken(adapted(tmp_path, "GPT", edited(*LABELS)), FORMULA)


def test_refusals_are_those_of_every_form() -> None:
    assert refused(False, ["it raised RuntimeError: sizes"]) == NO_PADDING
    assert refused(True, ["it raised IndexError: 6"]) == "later positions raise an error"
    assert refused(True, ["it raised RuntimeError: sizes"]) == ""
    assert refused(True, ["it raised ValueError: too many values to unpack"]) == ""
    assert refused(True, ["it raised ValueError: one"]) == "positions of a whole text are refused"
    assert refused(False, ["it raised RuntimeError", "the output differs"]) == ""
    assert refused(False, []) == ""


def test_argument_that_is_used_is_no_stored_one() -> None:
    class Stores:
        def __init__(self, tokenizer: object, width: int, depth: int) -> None:
            self.tokenizer = tokenizer
            self.width = width
            self.twice = 2 * self.width
            self.halves = depth // 2

    assert only_stored(Stores, "tokenizer")
    assert not only_stored(Stores, "width")
    assert not only_stored(Stores, "depth")
    assert not only_stored(Stores, "missing")


def network(args: object) -> object:
    """Return a network whose width a field may say."""
    return inner(factor=args.Factor)  # type: ignore[attr-defined]


def inner(factor: float | None) -> object:
    """Return what the network is made of."""
    return None if factor is not None else network


def test_field_of_an_argument_that_is_compared_with_none_may_be_none() -> None:
    assert may_be_none(network, "Factor")
    assert not may_be_none(network, "Width")
