"""Decoder-only models that hold embedding, layers and generator in one list of modules."""

from pathlib import Path
from typing import Any

import pytest

import attentest
from attentest.targets.adapt import Unclear

SOURCE = """
import math

import torch
from torch import nn


class Embedded(nn.Module):
    def __init__(self, vocabulary, width, longest):
        super().__init__()
        self.tokens, self.places = nn.Embedding(vocabulary, width), nn.Embedding(longest, width)

    def forward(self, ids):
        return self.tokens(ids) + self.places.weight[: ids.shape[1]]


class Attending(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads, self.norm = heads, nn.LayerNorm(width)
        self.packed, self.output = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x):
        q, k, v = (
            one.unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for one in self.packed(self.norm(x)).chunk(3, dim=-1)
        )
        scores = q @ k.mT / math.sqrt(q.shape[-1])
        later = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(1)
        weights = scores.masked_fill(later, -math.inf).softmax(-1)
        return x + self.output((weights @ v).transpose(1, 2).flatten(2))


class Network(nn.Module):
    def __init__(self, width, inner):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.wide, self.narrow = nn.Linear(width, inner), nn.Linear(inner, width)

    def forward(self, x):
        return x + self.narrow(self.wide(self.norm(x)).relu())


class TextLM(nn.Module):
    def __init__(self, vocab_size, d_model, n_heads, n_layers, d_ff, max_len):
        super().__init__()
        layers = []
        for _ in range(n_layers):
            layers += [Attending(d_model, n_heads), Network(d_model, d_ff)]
        self.net = nn.Sequential(
            Embedded(vocab_size, d_model, max_len),
            *layers,
            nn.LayerNorm(d_model),
            nn.Linear(d_model, vocab_size),
        )

    def forward(self, ids):
        return self.net(ids)
"""
ALONE = SOURCE.replace("class TextLM(nn.Module)", "class TextLM(nn.Sequential)")
ALONE = ALONE.replace("        super().__init__()\n        layers", "        layers")
ALONE = ALONE.replace("self.net = nn.Sequential(", "super().__init__(")
ALONE = ALONE.replace("    def forward(self, ids):\n        return self.net(ids)\n", "")


def adapted(folder: Path, source: str) -> Any:
    """Return the backend of the model of `source`."""
    path = folder / "own.py"
    path.write_text(source, encoding="utf-8")
    return attentest.adapted(f"{path}:TextLM")


@pytest.mark.proof
def test_layers_between_other_items_of_a_list_are_read(tmp_path: Path) -> None:
    made = adapted(tmp_path, SOURCE)
    assert made.components == ("language_model",)
    text = made.written()
    assert 'Place("net.layers.0.packed.weight"' in text
    assert "def sectioned(model" in text
    assert '"net", 1, 2 * sizes.layers)' in text


@pytest.mark.proof
def test_layers_in_a_model_that_is_a_list_are_read(tmp_path: Path) -> None:
    made = adapted(tmp_path, ALONE)
    assert 'Place("layers.0.packed.weight"' in "\n".join(made.understood)


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        pytest.param("/ math.sqrt(q.shape[-1])", "/ q.shape[-1]", marks=pytest.mark.proof),
        ("*layers,", "*layers[:2] * n_layers,"),
    ],
)
def test_mistaken_model_in_one_list_is_asked_about_or_found(
    right: str, wrong: str, tmp_path: Path
) -> None:
    assert right in SOURCE
    try:
        made = adapted(tmp_path, SOURCE.replace(right, wrong))
    except Unclear:
        return
    assert made.mistaken


@pytest.mark.proof
def test_layers_of_another_kind_behind_the_third_are_asked_about(tmp_path: Path) -> None:
    each = "        for _ in range(n_layers):"
    source = SOURCE.replace(each, each.replace(" _ ", " n "))
    source = source.replace("return x + self.output(", "return self.kept * x + self.output(")
    source = source.replace("self.packed, self", "self.kept = 1\n        self.packed, self")
    added = "Network(d_model, d_ff)]"
    source = source.replace(added, f"{added}\n            layers[-2].kept = int(n % 4 != 3)")
    with pytest.raises(Unclear, match="4 layers of width 64"):
        adapted(tmp_path, source)
