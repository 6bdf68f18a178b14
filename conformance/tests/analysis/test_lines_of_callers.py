"""Mistakes of callers: masks with the opposite meaning, and another value for an argument."""

from pathlib import Path

import pytest
from folders import SUPPORT
from proof import share

from attentest import adapted
from attentest.analysis.lines.callers import takes_each_once
from attentest.analysis.lines.recording import Place
from attentest.judging.bench import Bench
from attentest.judging.judge import judge
from attentest.results.verdict import Location, Status

EINSUM = (SUPPORT / "wild_models" / "einsum.py").read_text(encoding="utf-8")
EINSUM = EINSUM.replace('float("-inf")', "-1e9")  # finite where every key is hidden


def located(folder: Path, source: str, name: str, clause: str, **choices: str) -> Location | None:
    """Return the line at which `name`, in a file with `source`, begins to break `clause`."""
    file = folder / "own.py"
    file.write_text(source, encoding="utf-8")
    verdict = judge(Bench(adapted(f"{file}:{name}", anyway=True, choices=choices)), clause)
    assert verdict.status is Status.VIOLATION
    return verdict.location


@pytest.mark.proof
@share(2)
@pytest.mark.parametrize(
    ("old", "new", "computed"),
    [
        ("(src == self.src_pad)", "(src != self.src_pad)", "padding (inverted)"),
        ("(trg == self.trg_pad)", "(trg != self.trg_pad)", "padding (inverted)"),
        (".triu(1)", ".triu(2)", "each position sees one after it too"),
    ],
)
def test_mask_of_hidden_keys_that_is_made_wrongly_is_the_line_that_makes_it(
    old: str, new: str, computed: str, tmp_path: Path
) -> None:
    assert EINSUM.count(old) == 1
    found = located(tmp_path, EINSUM.replace(old, new), "Seq2Seq", "model.formula")
    assert found is not None
    assert new in found.code
    assert computed in found.computed
    assert found.confirmed


@pytest.mark.proof
def test_mask_that_is_used_wrongly_is_not_the_line_that_makes_it(tmp_path: Path) -> None:
    old = "scores.masked_fill(hide,"
    assert EINSUM.count(old) == 1
    source = EINSUM.replace(old, "scores.masked_fill(~hide,")
    found = located(tmp_path, source, "Seq2Seq", "model.formula")
    assert found is not None
    assert not found.code.startswith(("hide_src", "hide_trg"))


LAYER = """
import torch
from torch import nn


class Attention(nn.Module):
    def __init__(self, d_model, heads):
        super().__init__()
        self.heads = heads
        self.q_proj, self.k_proj = nn.Linear(d_model, d_model), nn.Linear(d_model, d_model)
        self.v_proj, self.o_proj = nn.Linear(d_model, d_model), nn.Linear(d_model, d_model)

    def split(self, x):
        return x.unflatten(-1, (self.heads, -1)).transpose(1, 2)

    def forward(self, query, key, value, mask=None):
        length = query.shape[1]
        q = self.split(self.q_proj(query))
        k = self.split(self.k_proj(key))
        v = self.split(self.v_proj(value))
        scores = q @ k.mT / q.shape[-1] ** 0.5
        if mask is not None:
            scores = scores.masked_fill(~mask, -torch.inf)
        return self.o_proj((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))


class DecoderLayer(nn.Module):
    def __init__(self, d_model, heads, d_ff):
        super().__init__()
        self.self_attn, self.cross_attn = Attention(d_model, heads), Attention(d_model, heads)
        self.norm1, self.norm2 = nn.LayerNorm(d_model), nn.LayerNorm(d_model)
        self.norm3 = nn.LayerNorm(d_model)
        self.ff = nn.Sequential(nn.Linear(d_model, d_ff), nn.ReLU(), nn.Linear(d_ff, d_model))

    def forward(self, x, memory, source_mask=None, target_mask=None):
        h = self.norm1(x)
        x = x + self.self_attn(h, h, h, target_mask)
        x = x + self.cross_attn(self.norm2(x), memory, memory, source_mask)
        return x + self.ff(self.norm3(x))
"""


@pytest.mark.proof
@share(2)
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("memory, memory, source_mask)", "memory, x, source_mask)"),  # another value
        ("self.cross_attn(self.norm2(x), memory", "self.cross_attn(x, memory"),  # no norm
        ("self.v_proj(value)", "self.v_proj(query)"),  # a function that takes the wrong one
    ],
)
def test_line_is_that_of_the_function_that_takes_the_wrong_value(
    old: str, new: str, tmp_path: Path
) -> None:
    assert LAYER.count(old) == 1
    mistaken = LAYER.replace(old, new)
    clause = "decoder.layer-formula"
    found = located(tmp_path, mistaken, "DecoderLayer", clause, norm_placement="pre")
    assert found is not None
    assert new in found.code


@pytest.mark.parametrize(
    ("line", "alone"),
    [
        ("    q = f(query)", True),
        ("    k = f(key) + key", False),
        ("    v = g(value)", False),  # a later line uses it, too
        ("    return q, k, v, value", False),
    ],
)
def test_arguments_of_one_use_are_told_from_others(line: str, alone: bool, tmp_path: Path) -> None:
    text = """def attend(query, key, value):
    n = query.shape[0]
    q = f(query)
    k = f(key) + key
    v = g(value)
    return q, k, v, value
"""
    file = tmp_path / "code.py"
    file.write_text(text)
    number = text.splitlines().index(line) + 1
    assert takes_each_once(Place(str(file), number, 0, 1)) is alone


PROJECTED = """
from torch import nn


class Attention(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.q, self.k, self.v, self.o = (nn.Linear(dim, dim) for _ in range(4))

    def split(self, x):
        return x.unflatten(-1, (self.heads, -1)).transpose(1, 2).contiguous()

    def forward(self, x):
        q = self.split(self.q(x) * (x.shape[-1] // self.heads) ** -0.5)
        k = self.split(self.k(x))
        v = self.split(self.v(x))
        mixed = (q @ k.mT).softmax(-1) @ v
        return self.o(mixed.transpose(1, 2).flatten(2))


class Layer(nn.Module):
    def __init__(self, dim, heads, inner):
        super().__init__()
        self.attn = Attention(dim, heads)
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.fc1, self.fc2 = nn.Linear(dim, inner), nn.Linear(inner, dim)

    def forward(self, x):
        x = self.norm1(x + self.attn(x))
        return self.norm2(x + self.fc2(self.fc1(x).relu()))


class Encoder(nn.Module):
    def __init__(self, vocab_size, dim, heads, inner, layers):
        super().__init__()
        self.words, self.norm = nn.Embedding(vocab_size, dim), nn.LayerNorm(dim)
        self.layers = nn.ModuleList(Layer(dim, heads, inner) for _ in range(layers))

    def forward(self, ids):
        x = self.norm(self.words(ids))
        for layer in self.layers:
            x = layer(x)
        return x
"""


@pytest.mark.proof
def test_projection_by_other_weights_is_the_line_and_not_the_call_of_its_layer(
    tmp_path: Path,
) -> None:
    source = PROJECTED.replace("v = self.split(self.v(x))", "v = self.split(self.k(x))")
    found = located(tmp_path, source, "Encoder", "encoder.formula")
    assert found is not None
    assert found.code == "v = self.split(self.k(x))"


OWN_SOFTMAX = """
import torch


def softmax(x, dim):
    e = torch.exp(x - x.max(dim=dim, keepdim=True).values)
    return e / e.sum(dim=dim, keepdim=True)


def attention(query, key, value):
    scores = query @ key.transpose(-2, -1) / query.shape[-1] ** 0.5
    return softmax(scores, dim=-2) @ value
"""


@pytest.mark.parametrize(
    ("edits", "line"),
    [
        ((), "return softmax(scores, dim=-2) @ value"),
        pytest.param(
            (("dim=-2", "-1"), ("e / e.sum(dim=dim", "e / e.sum(dim=-2")),
            "return e / e.sum(dim=-2, keepdim=True)",
            marks=pytest.mark.proof,
        ),
    ],
    ids=["caller", "helper"],
)
def test_axis_that_a_caller_gives_has_the_line_of_the_caller(
    edits: tuple[tuple[str, str], ...], line: str, tmp_path: Path
) -> None:
    source = OWN_SOFTMAX
    for old, new in edits:
        assert source.count(old) == 1
        source = source.replace(old, new)
    found = located(tmp_path, source, "attention", "attention.formula")
    assert found is not None
    assert found.code == line
