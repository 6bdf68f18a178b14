"""The lines of whole decoder-only models, whose blocks are one formula."""

from pathlib import Path

import numpy as np
import pytest
from mistaken_code import adapted, edited
from proof import share

from attentest.analysis.lines import cases
from attentest.analysis.lines.formula import Formula
from attentest.analysis.lines.formulas import build
from attentest.harness.oracle import Reference
from attentest.harness.subject import Subject
from attentest.judging.bench import Bench
from attentest.judging.judge import judge
from attentest.results.verdict import Status
from attentest_spec import COMPONENTS, Choices
from attentest_spec.profiles import profile_of

CHOICES = {
    "first norms": {"block_norms": "pre", "final_norm": "present"},
    "last norms": {"block_norms": "post"},
    "norms of branches": {"block_norms": "post-branch", "final_norm": "present"},
    "both norms": {"block_norms": "sandwich", "norm_kind": "rms"},
    "two branches": {"block_norms": "pre", "block_layout": "parallel-two-norms"},
    "one norm": {"block_norms": "pre", "block_layout": "parallel-one-norm"},
    "learned positions": {"positional_encoding": "learned", "embedding_norm": "present"},
    "window": {"attention_window": "with-query", "positional_encoding": "none"},
}


@pytest.mark.parametrize("component", ["language_model", "causal_layer"])
@pytest.mark.parametrize("chosen", [*CHOICES, "llama", "gemma"])
def test_formula_of_blocks_is_the_references(component: str, chosen: str) -> None:
    known = CHOICES.get(chosen) or profile_of(chosen).choices
    choices = Choices().but(**known)
    subject = Subject(Reference(choices), choices=choices)
    cases._call(subject, component, "", "none", layers=2)
    question = subject.trace[-1].question
    formula = Formula(question.probe.sizes, choices, question.probe.parameters)
    given = dict(zip(COMPONENTS[component].inputs, question.inputs, strict=False))
    build(formula, component, "", given)
    expected = question.probe.expected(*question.inputs).output
    np.testing.assert_allclose(formula.output.value, expected, rtol=1e-12, atol=1e-13)


CODE = """
import torch
from torch import nn
from torch.nn import functional as F


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.out = nn.Linear(width, width, bias=False)

    def forward(self, x):
        q, k, v = (
            one.unflatten(-1, (self.heads, -1)).transpose(1, 2) for one in self.qkv(x).chunk(3, -1)
        )
        length = x.shape[1]
        seen = torch.ones(length, length, dtype=torch.bool, device=x.device).tril()
        scores = (q @ k.mT * q.shape[-1] ** -0.5).masked_fill(~seen, float("-inf"))
        return self.out((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))


class Block(nn.Module):
    def __init__(self, width, heads, hidden):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = Attention(width, heads)
        self.up, self.down = nn.Linear(width, hidden), nn.Linear(hidden, width)

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        h = self.norm2(x)
        return x + self.down(F.gelu(self.up(h)))


class SmallGPT(nn.Module):
    def __init__(self, vocab_size, block_size, n_layer, n_head, n_embd, hidden):
        super().__init__()
        self.wte = nn.Embedding(vocab_size, n_embd)
        self.wpe = nn.Embedding(block_size, n_embd)
        self.blocks = nn.ModuleList(Block(n_embd, n_head, hidden) for _ in range(n_layer))
        self.norm = nn.LayerNorm(n_embd)
        self.head = nn.Linear(n_embd, vocab_size, bias=False)

    def forward(self, ids):
        x = self.wte(ids) + self.wpe.weight[: ids.shape[1]]
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))
"""


def formula_verdict(folder: Path, code: str):
    """Return the verdict of the formula of the model in `code`."""
    return judge(Bench(adapted(folder, "SmallGPT", code), effort=0.2), "language_model.formula")


@pytest.mark.proof
@share(3, rest=1)
@pytest.mark.parametrize(
    ("old", "new", "line", "computed"),
    [
        ("return x + self.down(", "return self.down(", "return self.down(", "without the residual"),
        ("x = x + self.attention(", "x = self.attention(", "x = self.attention(", "without the r"),
        (".tril()", ".tril(1)", ".tril(1)", "one after it too"),
        (
            "h = self.norm2(x)",
            "h = self.norm1(x)",
            "h = self.norm1(x)",
            "attention_norm in the place",
        ),
    ],
)
def test_line_of_a_mistake_in_a_model_is_proved(
    old: str, new: str, line: str, computed: str, tmp_path: Path
) -> None:
    verdict = formula_verdict(tmp_path, edited(CODE, (old, new)))
    assert verdict.status is Status.VIOLATION
    location = verdict.location
    assert location is not None
    assert line in location.code
    assert computed in location.computed
    assert location.confirmed


@pytest.mark.proof
def test_correct_model_has_no_line(tmp_path: Path) -> None:
    verdict = formula_verdict(tmp_path, CODE)
    assert verdict.status is Status.PASS
    assert verdict.location is None


NETWORK = """
class Network(nn.Module):
    def __init__(self, width, hidden):
        super().__init__()
        self.up, self.down = nn.Linear(width, hidden), nn.Linear(hidden, width)

    def forward(self, x):
        rows = self.up.weight.T
        return self.down(F.gelu(x @ rows + self.up.bias))


class Block("""
PARTS = "self.up, self.down = nn.Linear(width, hidden), nn.Linear(hidden, width)\n"
OWN = edited(
    CODE.replace(PARTS, "self.network = Network(width, hidden)\n"),
    ("\nclass Block(", NETWORK),
    ("h = self.norm2(x)\n        return", "return"),
    ("self.down(F.gelu(self.up(h)))", "self.network(self.norm2(x))"),
)


@pytest.mark.proof
def test_call_that_gives_a_network_its_input_without_a_norm_is_to_blame(tmp_path: Path) -> None:
    """The network makes other values of its weights, and they are right."""
    wrong = ("self.network(self.norm2(x))", "self.network(x)")
    location = formula_verdict(tmp_path, edited(OWN, wrong)).location
    assert location is not None
    assert "return x + self.network(x)" in location.code


GATED = "return self.down(F.silu(self.gate(x)) * self.up(x))"


@pytest.mark.proof
def test_call_without_a_norm_is_to_blame_in_models_of_several_layers_too(tmp_path: Path) -> None:
    """Such a model is not right once one of its layers is given the normed rows."""
    wrong = edited(
        OWN,
        (PARTS, PARTS + "        self.gate = nn.Linear(width, hidden)\n"),
        (
            "rows = self.up.weight.T\n        return self.down(F.gelu(x @ rows + self.up.bias))",
            GATED,
        ),
        ("self.network(self.norm2(x))", "self.network(x)"),
    )
    bench = Bench(adapted(tmp_path, "SmallGPT", wrong), effort=0.2)
    names = ("formula", "every-layer-counts", "norm-kind", "order-matters", "float32")
    verdicts = [judge(bench, f"language_model.{one}") for one in names]
    lines = [one.location.code for one in verdicts if one.location]
    assert len(lines) > 1
    assert {*lines} == {"return x + self.network(x)"}
