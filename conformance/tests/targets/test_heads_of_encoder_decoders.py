"""Encoder-decoders in which every head gets its columns by one matrix."""

from pathlib import Path

import pytest
from mistaken_code import adapted, asked_or_broken, broken, edited

SOURCE = """
import torch
from torch import nn


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads, self.part = heads, width // heads
        self.for_query = nn.Linear(self.part, self.part, bias=False)
        self.for_key = nn.Linear(self.part, self.part, bias=False)
        self.for_value = nn.Linear(self.part, self.part, bias=False)
        self.out = nn.Linear(width, width)

    def forward(self, query, memory, hidden):
        b, n, m = len(query), query.shape[1], memory.shape[1]
        q = self.for_query(query.view(b, n, self.heads, self.part))
        k = self.for_key(memory.view(b, m, self.heads, self.part))
        v = self.for_value(memory.view(b, m, self.heads, self.part))
        scores = torch.einsum("bnhd,bmhd->bhnm", q, k) / self.part**0.5
        shares = scores.masked_fill(hidden, -1e20).softmax(dim=-1)
        return self.out(torch.einsum("bhnm,bmhd->bnhd", shares, v).reshape(b, n, -1))


class Network(nn.Sequential):
    def __init__(self, width, inner):
        super().__init__(nn.Linear(width, inner), nn.ReLU(), nn.Linear(inner, width))


class OfSource(nn.Module):
    def __init__(self, width, heads, inner):
        super().__init__()
        self.attention, self.network = Attention(width, heads), Network(width, inner)
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)

    def forward(self, x, hidden):
        x = self.norm1(x + self.attention(x, x, hidden))
        return self.norm2(x + self.network(x))


class OfTarget(nn.Module):
    def __init__(self, width, heads, inner):
        super().__init__()
        self.own, self.cross = Attention(width, heads), Attention(width, heads)
        self.network = Network(width, inner)
        self.norm1, self.norm2, self.norm3 = (nn.LayerNorm(width) for _ in range(3))

    def forward(self, x, memory, later, hidden):
        x = self.norm1(x + self.own(x, x, later))
        x = self.norm2(x + self.cross(x, memory, hidden))
        return self.norm3(x + self.network(x))


class Transformer(nn.Module):
    def __init__(
        self, src_vocab_size, trg_vocab_size, src_pad_idx, trg_pad_idx, embed_size=256,
        num_layers=6, heads=8, inner=512, max_length=100, device="cuda",
    ):
        super().__init__()
        self.pads, self.device = (src_pad_idx, trg_pad_idx), device
        self.words = nn.Embedding(src_vocab_size, embed_size)
        self.other_words = nn.Embedding(trg_vocab_size, embed_size)
        self.places = nn.Embedding(max_length, embed_size)
        self.other_places = nn.Embedding(max_length, embed_size)
        sizes = embed_size, heads, inner
        self.encoder = nn.ModuleList(OfSource(*sizes) for _ in range(num_layers))
        self.decoder = nn.ModuleList(OfTarget(*sizes) for _ in range(num_layers))
        self.head = nn.Linear(embed_size, trg_vocab_size)

    def forward(self, src, trg):
        hidden = (src == self.pads[0])[:, None, None].to(self.device)
        n = trg.shape[1]
        later = torch.ones(n, n, dtype=torch.bool, device=self.device).triu(1)
        later = later | (trg == self.pads[1])[:, None, None]
        x = self.words(src) + self.places(torch.arange(src.shape[1], device=self.device))
        for layer in self.encoder:
            x = layer(x, hidden)
        y = self.other_words(trg) + self.other_places(torch.arange(n, device=self.device))
        for layer in self.decoder:
            y = layer(y, x, later, hidden)
        return self.head(y)
"""
FORMULA = "model.formula"
SAID = "assumed that one matrix for every head is meant (for_key, for_query, for_value)"


@pytest.mark.proof
def test_model_whose_heads_share_a_matrix_is_judged(tmp_path: Path) -> None:
    backend = adapted(tmp_path, "Transformer", SOURCE)
    assert any(one.startswith(SAID) for one in backend.assumed)  # type: ignore[attr-defined]
    assert not broken(backend, FORMULA, "model.padding-in-a-batch", "model.float32")


@pytest.mark.proof
def test_adapter_of_such_a_model_is_written_with_its_matrices(tmp_path: Path) -> None:
    backend = adapted(tmp_path, "Transformer", SOURCE)
    text = backend.written()  # type: ignore[attr-defined]
    assert "class OfAllHeads(nn.Linear)" in text
    compile(text, "written", "exec")


@pytest.mark.proof
def test_strict_reading_asks_about_matrices_of_one_head(tmp_path: Path) -> None:
    from attentest.targets.adapt import Unclear

    with pytest.raises(Unclear, match="shared by all heads"):
        adapted(tmp_path, "Transformer", SOURCE, strict=True)


@pytest.mark.proof
@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("/ self.part**0.5", "/ (self.part * self.heads) ** 0.5"),
        (".softmax(dim=-1)", ".softmax(dim=-2)"),
        ("self.for_value(memory", "self.for_key(memory"),
        ("self.cross(x, memory, hidden)", "self.cross(x, x, later)"),
        (".triu(1)", ".triu(2)"),
        ('"bhnm,bmhd->bnhd", shares, v)', '"bhnm,bmhd->bhnd", shares, v)'),
    ],
)
def test_mistakes_of_such_a_model_are_asked_about_or_detected(
    right: str, wrong: str, tmp_path: Path
) -> None:
    assert asked_or_broken(tmp_path, "Transformer", SOURCE, right, wrong, FORMULA)


@pytest.mark.proof
def test_matrices_of_the_memory_alone_are_a_question(tmp_path: Path) -> None:
    """Heads that share a matrix on one side, and heads of another axis, are no one reading."""
    other = edited(
        SOURCE,
        ("q = self.for_query(query.view(b, n, self.heads, self.part))", "q = self.mapped(query)"),
        (
            "    def forward(self, query, memory, hidden):",
            "    def mapped(self, query):\n"
            "        b, n, _ = query.shape\n"
            "        parts = query.view(b, n, self.part, self.heads).transpose(2, 3)\n"
            "        return self.for_query(parts)\n\n"
            "    def forward(self, query, memory, hidden):",
        ),
    )
    assert asked_or_broken(
        tmp_path, "Transformer", other, "(2, 3)\n", "(2, 3).contiguous()\n", FORMULA
    )
