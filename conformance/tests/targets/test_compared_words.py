"""Questions about a text argument name the words that the constructor compares it with."""

import pytest
from mistaken_code import adapted, asked_or_broken, broken, edited

from attentest.targets.adapt import Unclear
from attentest.targets.adapt.objects.compared_words import names_file

NETWORK = """
from torch import nn


class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff, starting):
        super().__init__()
        assert starting in ["kaiming", "xavier"]
        self.inner, self.outer = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)
        if starting == "xavier":
            nn.init.xavier_uniform_(self.inner.weight)

    def forward(self, x):
        return self.outer(self.inner(x).relu())
"""


def test_a_word_with_which_the_numbers_are_right_is_an_assumption(tmp_path):
    found = adapted(tmp_path, "FeedForward", NETWORK)
    assert [one for one in found.assumed if "assumed starting=kaiming, which" in one]
    with pytest.raises(Unclear, match=r"--give starting=kaiming .* \(tried\)"):
        adapted(tmp_path, "FeedForward", NETWORK, strict=True)


def test_no_word_is_named_for_a_mistake(tmp_path):
    with pytest.raises(Unclear, match="none gives the numbers of the reference"):
        adapted(tmp_path, "FeedForward", NETWORK.replace("(x).relu()", "(x).relu().mean(1, True)"))


FILED = """
import json

from torch import nn


class Settings:
    def __init__(self, config_path):
        self.opened = json.load(open(config_path))
        self.dim, self.hidden = self.opened["dim"], self.opened["hidden"]


class FeedForward(nn.Module):
    def __init__(self, config: Settings):
        super().__init__()
        self.up, self.down = nn.Linear(config.dim, 8), nn.Linear(8, config.dim)

    def forward(self, x):
        return self.down(self.up(x).relu())
"""


def test_no_number_is_tried_as_the_name_of_a_file(tmp_path):
    with pytest.raises(Unclear) as question:
        adapted(tmp_path, "FeedForward", FILED)
    assert "what config_path is" in str(question.value)
    assert "--give config_path=" not in str(question.value)
    assert [names_file(one) for one in ("outputDir", "filename", "profile")] == [True, True, False]


POOLED = """
from torch import nn


class TextClassifier(nn.Module):
    def __init__(self, vocab_size, d_model, num_heads, d_ff, num_layers, pooling):
        super().__init__()
        self.pooling = pooling.lower()
        if self.pooling not in ("first", "mean"):
            raise ValueError(pooling)
        self.tokens = nn.Embedding(vocab_size, d_model)
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(d_model, num_heads, d_ff, 0.0, batch_first=True)
            for _ in range(num_layers)
        )
        self.head = nn.Linear(d_model, 3)

    def forward(self, ids):
        x = self.tokens(ids)
        for layer in self.layers:
            x = layer(x)
        return self.head(x[:, 0] if self.pooling == "first" else x.mean(1))
"""


def test_an_encoder_is_built_with_a_word_of_its_code_as_an_assumption(tmp_path):
    found = adapted(tmp_path, "TextClassifier", POOLED)
    assert "assumed pooling=first, which its code compares it with" in found.assumed
    assert not broken(found, "encoder.formula")
    with pytest.raises(Unclear, match="pooling"):
        adapted(tmp_path, "TextClassifier", POOLED, component="encoder", strict=True)


@pytest.mark.parametrize(
    ("right", "wrong"),
    [("x = layer(x)", "x = x + layer(x)"), ("x = layer(x)", "x = self.layers[0](x)")],
)
def test_an_encoder_with_such_a_word_excuses_no_mistake(right, wrong, tmp_path):
    assert asked_or_broken(
        tmp_path, "TextClassifier", POOLED, right, wrong, "encoder.formula", "encoder.gradient"
    )


STORED = """
from torch import nn


class Base(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config, self.origin = config, None
        self.origin = config.origin
"""
IN_CALLS = edited(
    POOLED,
    ("from torch import nn\n", "from stored import Base\nfrom torch import nn\n"),
    ("(nn.Module)", "(Base)"),
    ("self, vocab_size, d_model, num_heads, d_ff, num_layers, pooling", "self, config"),
    ("super().__init__()", "super().__init__(config)"),
    ("        self.pooling = pooling.lower()\n", ""),
    (
        '        if self.pooling not in ("first", "mean"):\n'
        "            raise ValueError(pooling)\n",
        "",
    ),
    ("nn.Embedding(vocab_size, d_model)", "nn.Embedding(config.vocab_size, config.d_model)"),
    (
        "d_model, num_heads, d_ff, 0.0, batch",
        "config.d_model, config.num_heads, config.d_ff, 0.0, batch",
    ),
    ("range(num_layers)", "range(config.num_layers)"),
    ("nn.Linear(d_model, 3)", "nn.Linear(config.d_model, 3)"),
    (
        'x[:, 0] if self.pooling == "first" else x.mean(1)',
        'self.pool(x, "first" if self.config.agg == "start" else self.config.agg)',
    ),
)
IN_CALLS += """
    def pool(self, x, kind):
        return x[:, 0] if kind == "first" else x.mean(1)
"""


def test_fields_that_calls_compare_with_words_have_one_and_stored_fields_are_none(tmp_path):
    (tmp_path / "stored.py").write_text(STORED)
    found = adapted(tmp_path, "TextClassifier", IN_CALLS)
    assert "assumed agg=start, which its code compares it with" in found.assumed
    assert not broken(found, "encoder.formula")


def test_fields_that_a_base_uses_are_an_assumption(tmp_path):
    (tmp_path / "stored.py").write_text(STORED + "        self.size = 2 * self.origin\n")
    found = adapted(tmp_path, "TextClassifier", IN_CALLS, component="encoder")
    assert "assumed that origin is a number that no layer has" in "\n".join(found.assumed)


NAMED_WORDS = """
import math
import types

import torch
from torch import nn

WORDS = types.ModuleType("words")
WORDS.FIXED, WORDS.LEARNED = "fixed", "learned"


class PositionalEncoding(nn.Module):
    def __init__(self, kind: str, num_embed: int, max_len: int):
        super().__init__()
        if kind == WORDS.FIXED:
            place = torch.arange(max_len)[:, None]
            angles = place / 10000 ** (torch.arange(0, num_embed, 2) / num_embed)
            table = torch.stack([angles.sin(), angles.cos()], -1).flatten(1)
            self.table = nn.Parameter(table, requires_grad=False)
        elif kind == WORDS.LEARNED:
            self.table = nn.Parameter(torch.empty(max_len, num_embed))
        else:
            raise ValueError(f"kind is {kind}")

    def forward(self, x):
        return x + self.table[: x.shape[1]]
"""


def test_a_word_with_a_name_and_the_one_size_that_is_left_are_an_assumption(tmp_path):
    found = adapted(tmp_path, "PositionalEncoding", NAMED_WORDS)
    assert [one for one in found.assumed if "assumed kind=fixed, num_embed as d_model" in one]
    assert not broken(found, "positional_encoding.formula")


def test_a_mistake_behind_a_word_with_a_name_does_not_pass(tmp_path):
    mistake = ("angles.sin(), angles.cos()", "angles.cos(), angles.sin()")
    assert asked_or_broken(
        tmp_path, "PositionalEncoding", NAMED_WORDS, *mistake, "positional_encoding.formula"
    )
