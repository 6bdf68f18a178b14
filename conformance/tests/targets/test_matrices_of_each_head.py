"""Attention with a matrix of its own for each head, and layers without an output projection."""

from pathlib import Path

import pytest
from mistaken_code import adapted, asked_or_broken, broken, edited

import attentest

LAYER = """
import torch
from torch import nn


class Heads(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads, self.part = heads, width // heads
        self.ask = nn.ModuleList(nn.Linear(self.part, self.part) for _ in range(heads))
        self.keep = nn.ModuleList(nn.Linear(self.part, self.part) for _ in range(heads))
        self.tell = nn.ModuleList(nn.Linear(self.part, self.part) for _ in range(heads))

    def forward(self, texts):
        every = []
        for text in texts:
            found = []
            for head in range(self.heads):
                x = text[:, head * self.part : (head + 1) * self.part]
                q, k, v = self.ask[head](x), self.keep[head](x), self.tell[head](x)
                weights = torch.softmax(q @ k.T / self.part**0.5, dim=-1)
                found.append(weights @ v)
            every.append(torch.cat(found, dim=-1))
        return torch.stack(every)


class EncoderLayer(nn.Module):
    def __init__(self, width, heads, inner):
        super().__init__()
        self.attention = Heads(width, heads)
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.network = nn.Sequential(nn.Linear(width, inner), nn.ReLU(), nn.Linear(inner, width))

    def forward(self, x):
        x = self.norm1(x + self.attention(x))
        return self.norm2(x + self.network(x))


class Encoder(nn.Module):
    def __init__(self, width, layers, heads, inner):
        super().__init__()
        self.layers = nn.ModuleList(EncoderLayer(width, heads, inner) for _ in range(layers))

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x
"""
TOGETHER = edited(
    LAYER,
    ("        every = []\n        for text in texts:\n", "        if True:\n"),
    ("text[:, head", "texts[..., head"),
    ("            every.append(torch.cat(found, dim=-1))\n", ""),
    ("k.T ", "k.transpose(-2, -1) "),
    ("torch.stack(every)", "torch.cat(found, dim=-1)"),
)
WHOLE = edited(
    LAYER,
    *[
        (f"self.{one} = nn.ModuleList(nn.Linear(self.part, self.part) for _ in range(heads))", new)
        for one, new in (
            ("ask", "self.ask = nn.Linear(width, width)"),
            ("keep", "self.keep = nn.Linear(width, width)"),
            ("tell", "self.tell = nn.Linear(width, width)"),
        )
    ],
    (
        "q, k, v = self.ask[head](x), self.keep[head](x), self.tell[head](x)",
        "q, k, v = (one(text)[:, cut] for one in (self.ask, self.keep, self.tell))",
    ),
    ("x = text[:, head * self.part : (", "cut = slice(head * self.part, ("),
    ("(head + 1) * self.part]", "(head + 1) * self.part)"),
)
CLAUSES = ("encoder.formula", "encoder.layers-in-sequence")
MISTAKES = [
    (" / self.part**0.5", ""),
    (" / self.part**0.5", " / (self.part * self.heads) ** 0.5"),
    ("dim=-1)\n                found", "dim=-2)\n                found"),
    ("weights @ v)", "weights @ k)"),
    ("torch.cat(found, dim=-1)", "torch.stack(found, dim=-1).flatten(1)"),
    ("x + self.attention(x)", "self.attention(x)"),
    ("self.norm2(x + self.network", "self.norm1(x + self.network"),
]


@pytest.mark.proof
@pytest.mark.parametrize(
    "source", [LAYER, TOGETHER, WHOLE], ids=["each sample", "all samples", "whole matrices"]
)
def test_layers_with_a_matrix_for_each_head_are_judged(source: str, tmp_path: Path) -> None:
    backend = adapted(tmp_path, "EncoderLayer", source)
    assumed = "\n".join(backend.assumed)  # type: ignore[attr-defined]
    assert ("its own for each head is meant (ask, keep, tell)" in assumed) == (source is not WHOLE)
    assert "attention in its layers (attention) has no output projection" in assumed
    assert not broken(backend, "encoder.layer-formula", "encoder.gradient")
    (tmp_path / "written.py").write_text(backend.written())  # type: ignore[attr-defined]
    written = attentest.adapted(str(tmp_path / "written.py:backend"))
    assert not broken(written, "encoder.layer-formula")


@pytest.mark.proof
@pytest.mark.parametrize("source", [LAYER, WHOLE], ids=["each head", "whole matrices"])
@pytest.mark.parametrize(("right", "wrong"), MISTAKES)
def test_mistakes_in_layers_without_an_output_are_found_or_asked_about(
    right: str, wrong: str, source: str, tmp_path: Path
) -> None:
    assert asked_or_broken(tmp_path, "Encoder", source, right, wrong, *CLAUSES)


@pytest.mark.proof
@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("text[:, head * self.part : (head + 1) * self.part]", "text[:, : self.part]"),
        ("self.ask[head](x)", "self.ask[0](x)"),
        ("self.keep[head](x)", "self.ask[head](x)"),
        ("self.tell[head](x)", "self.tell[head](2 * x)"),
    ],
)
def test_columns_of_another_head_are_found_or_asked_about(
    right: str, wrong: str, tmp_path: Path
) -> None:
    assert asked_or_broken(tmp_path, "Encoder", LAYER, right, wrong, *CLAUSES)


@pytest.mark.proof
def test_encoders_with_a_matrix_for_each_head_are_judged(tmp_path: Path) -> None:
    backend = adapted(tmp_path, "Encoder", LAYER)
    assert "for each head is meant" in "\n".join(backend.assumed)  # type: ignore[attr-defined]
    assert not broken(backend, "encoder.formula")
