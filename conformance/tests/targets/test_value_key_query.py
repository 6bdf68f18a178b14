"""Layers of an encoder that are called with value, key and query."""

from pathlib import Path

import pytest
from mistaken_code import adapted, broken
from proof import share
from standalone import run_without_suite

import attentest
from attentest.judging.bench import Bench
from attentest.judging.judge import judge
from attentest.targets.adapt import Unclear

BLOCK = """
import torch
from torch import nn


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads, self.head = heads, width // heads
        self.q, self.k, self.v, self.out = (nn.Linear(width, width) for _ in range(4))

    def forward(self, values, keys, query, mask):
        q, k, v = (
            linear(given).unflatten(-1, (self.heads, self.head)).transpose(1, 2)
            for linear, given in ((self.q, query), (self.k, keys), (self.v, values))
        )
        scores = q @ k.mT / self.head**0.5
        if mask is not None:
            scores = scores.masked_fill(mask == 0, -torch.inf)
        return self.out((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))


class TransformerBlock(nn.Module):
    def __init__(self, width, heads, hidden):
        super().__init__()
        self.attention = Attention(width, heads)
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.ff = nn.Sequential(nn.Linear(width, hidden), nn.ReLU(), nn.Linear(hidden, width))

    def forward(self, value, key, query, mask):
        x = self.norm1(query + self.attention(value, key, query, mask))
        return self.norm2(x + self.ff(x))
"""
FORMULA = "encoder.layer-formula"


@share(3, rest=1)
@pytest.mark.parametrize("names", ["value, key, query", "v, k, q", "queries, keys, values"])
def test_block_is_read_by_the_names_and_says_so(names: str, tmp_path: Path) -> None:
    source = BLOCK
    if names != "value, key, query":
        first, second, third = names.split(", ")
        query, value = (third, first) if third.startswith("q") else (first, third)
        head, body = BLOCK.split("    def forward(self, value, key, query, mask):")
        body = body.replace("query", query).replace("value, key", f"{value}, {second}")
        source = f"{head}    def forward(self, {names}, mask):{body}"
    backend = adapted(tmp_path, "TransformerBlock", source)
    assert any("are one sequence" in one for one in backend.assumed)
    assert broken(backend, FORMULA, "encoder.padding-invariance") == []


TURNED = """
    def forward(self, v, k, q, mask):
        value, key, query = (one.transpose(0, 1) for one in (v, k, q))
        return self.layer(value, key, query, mask).transpose(0, 1)

    def layer("""


def test_sequence_first_block_and_its_written_adapter(tmp_path: Path) -> None:
    head, body = BLOCK.split("class TransformerBlock")
    source = f"{head}class TransformerBlock{body.replace('    def forward(', TURNED[1:])}"
    backend = adapted(tmp_path, "TransformerBlock", source)
    assert broken(backend, FORMULA) == []
    file = tmp_path / "written.py"
    file.write_text(backend.written())
    assert broken(attentest.adapted(str(file)), FORMULA) == []


MISTAKES = [("query + self.attention", "self.attention"), ("self.head**0.5", "self.heads**0.5")]


@pytest.mark.proof
@pytest.mark.parametrize(("right", "wrong"), MISTAKES)
def test_mistake_in_such_a_block_is_a_violation(right: str, wrong: str, tmp_path: Path) -> None:
    assert BLOCK.count(right) == 1
    backend = adapted(tmp_path, "TransformerBlock", BLOCK.replace(right, wrong))
    assert judge(Bench.for_status(backend), FORMULA).status.value == "violation"


@pytest.mark.proof
def test_violation_is_reproduced_without_the_suite(tmp_path: Path) -> None:
    backend = adapted(tmp_path, "TransformerBlock", BLOCK.replace("query + self.att", "self.att"))
    verdict = judge(Bench(backend, effort=0.2, shrink=False, diagnose=False), FORMULA)
    assert verdict.counterexample is not None
    ((ran, text),) = run_without_suite([verdict.counterexample.code])
    assert ran, text


SWAPPED = """    def forward(self, query, key, value, mask):
        x = self.norm1(value + self.attention(query, key, value, mask))
"""


def test_names_that_the_numbers_contradict_are_a_question(tmp_path: Path) -> None:
    start = BLOCK.index("    def forward(self, value, key, query, mask)")
    source = BLOCK[:start] + SWAPPED + BLOCK[BLOCK.index("        return self.norm2") :]
    with pytest.raises(Unclear, match="shows that it is value") as question:
        adapted(tmp_path, "TransformerBlock", source)
    assert "--argument x=query" in str(question.value)
    backend = adapted(tmp_path, "TransformerBlock", source, arguments={"x": "query"})
    assert broken(backend, FORMULA) == []
