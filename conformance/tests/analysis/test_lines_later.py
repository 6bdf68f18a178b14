"""The lines of code with parts of later models, such as positions inside attention."""

from pathlib import Path

import numpy as np
import pytest
from mistaken_code import adapted
from proof import share

from attentest.analysis.lines import cases
from attentest.analysis.lines.formula import Formula
from attentest.analysis.lines.formulas import build
from attentest.analysis.lines.locate import locate
from attentest.harness.oracle import Reference
from attentest.harness.subject import Subject
from attentest.judging.bench import Bench
from attentest_spec import COMPONENTS, Choices

TURNED = {"attention_rotary": "query-and-key", "attention_causality": "built-in"}
LATER = {"norm_kind": "rms", "feed_forward_gate": "gated", "activation": "silu"}
ATTENTION = {
    "halves": {**TURNED, "rotary_pairs": "halves"},
    "pairs": {**TURNED, "rotary_pairs": "adjacent", "rotary_base": 500_000.0},
    "rounded": {**TURNED, "rotary_arithmetic": "float32", "key_heads": "fewer"},
    "backward": {**TURNED, "rotary_direction": "backward", "rotary_width": 0.5},
    "alibi": {"relative_bias": "alibi"},
    "causal alibi": {"relative_bias": "alibi-geometric", "attention_causality": "built-in"},
    "norm per head": {**TURNED, "query_key_norm": "per-head"},
    "norm of a row": {"query_key_norm": "whole-projection", "key_heads": "fewer"},
    "norm behind": {
        **TURNED,
        "query_key_norm": "unit-length",
        "query_key_norm_place": "after-rotation",
    },
    "window": {**TURNED, "attention_window": "with-query"},
    "cap": {"score_scale": 0.25, "score_cap": 3.0},
}


def formula_of(component: str, choices: Choices, layers: int = 1):
    """Return the formula of a call of the reference, and what the reference answers."""
    subject = Subject(Reference(choices), choices=choices)
    masked = "none" if component in cases._UNMASKED else "per-sample"
    cases._call(subject, component, "", masked, layers)
    question = subject.trace[-1].question
    formula = Formula(question.probe.sizes, choices, question.probe.parameters)
    given = dict(zip(COMPONENTS[component].inputs, question.inputs, strict=True))
    build(formula, component, "", given)
    return formula, question.probe.expected(*question.inputs).output


@pytest.mark.parametrize("chosen", ATTENTION.values(), ids=ATTENTION)
def test_formula_of_later_attention_is_the_references(chosen) -> None:
    formula, expected = formula_of("multi_head_attention", Choices().but(**chosen))
    np.testing.assert_allclose(formula.output.value, expected, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("component", ["residual", "encoder_layer", "decoder_layer", "encoder"])
@pytest.mark.parametrize("placement", ["pre", "post"])
def test_formula_of_later_layers_is_the_references(component, placement) -> None:
    choices = Choices().but(
        **LATER, attention_rotary="query-and-key", norm_placement=placement, final_norm="present"
    )
    formula, expected = formula_of(component, choices, layers=2)
    np.testing.assert_allclose(formula.output.value, expected, rtol=1e-12, atol=1e-13)


CODE = """
import torch
from torch import nn


def turn(x, cos, sin):
    a, b = x.chunk(2, dim=-1)
    first = a * cos - b * sin
    second = b * cos + a * sin
    return torch.cat((first, second), dim=-1)


class CausalSelfAttention(nn.Module):
    def __init__(self, width, heads, kv_heads):
        super().__init__()
        self.heads, self.groups, self.width = heads, kv_heads, width // heads
        self.q_proj = nn.Linear(width, width, bias=False)
        self.k_proj = nn.Linear(width, kv_heads * self.width, bias=False)
        self.v_proj = nn.Linear(width, kv_heads * self.width, bias=False)
        self.o_proj = nn.Linear(width, width, bias=False)
        speeds = 10000.0 ** -(torch.arange(0, self.width, 2).float() / self.width)
        angles = torch.outer(torch.arange(512).float(), speeds)
        self.register_buffer("cos", angles.cos(), persistent=False)
        self.register_buffer("sin", angles.sin(), persistent=False)

    def forward(self, x):
        b, t, c = x.shape
        q = self.q_proj(x).view(b, t, self.heads, self.width).transpose(1, 2)
        k = self.k_proj(x).view(b, t, self.groups, self.width).transpose(1, 2)
        v = self.v_proj(x).view(b, t, self.groups, self.width).transpose(1, 2)
        q = turn(q, self.cos[:t], self.sin[:t])
        k = turn(k, self.cos[:t], self.sin[:t])
        k = k.repeat_interleave(self.heads // self.groups, dim=1)
        v = v.repeat_interleave(self.heads // self.groups, dim=1)
        scores = q @ k.mT * self.width**-0.5
        later = torch.ones(t, t, dtype=torch.bool, device=x.device).triu(1)
        weights = scores.masked_fill(later, float("-inf")).softmax(-1)
        y = weights @ v
        return self.o_proj(y.transpose(1, 2).reshape(b, t, c))
"""


def first_line(folder: Path, code: str, name: str = "CausalSelfAttention", **reading: object):
    """Return the line of the first wrong call of a class in `code`, None for none."""
    backend = adapted(folder, name, code, **reading)
    subject = Bench(backend).subject()
    case = next(cases.own_cases(subject, *backend.components), None)
    with np.errstate(all="ignore"):
        return case and locate(subject, case.steps, {})


def test_sound_attention_with_positions_has_no_line(tmp_path: Path) -> None:
    assert first_line(tmp_path, CODE) is None


TILED = "k = k.repeat(1, self.heads // self.groups, 1, 1)"


@share(3, rest=1)
@pytest.mark.parametrize(
    ("old", "new", "step", "computed"),
    [
        ("first = a * cos - b * sin", "first = a * cos + b * sin", "turned", "a cos + b sin"),
        ("k = k.repeat_interleave(self.heads // self.groups, dim=1)", TILED, "key", "in turn"),
        ("y = weights @ v", "y = weights @ k", "head outputs", "made from the repeated turned key"),
        ("softmax(-1)", "softmax(-2)", "weights", "over the queries"),
        ("k.mT * self.width**-0.5", "k.mT * c**-0.5", "scaled scores", "scores / "),
    ],
)
def test_line_of_wrong_attention_with_positions_is_named(
    old: str, new: str, step: str, computed: str, tmp_path: Path
) -> None:
    assert CODE.count(old) == 1
    location = first_line(tmp_path, CODE.replace(old, new))
    assert location is not None
    assert new in location.code
    assert step in location.step
    assert computed in location.computed
    assert location.confirmed


def test_keys_that_are_not_turned_are_named_where_they_are_used(tmp_path: Path) -> None:
    code = CODE.replace("        k = turn(k, self.cos[:t], self.sin[:t])\n", "")
    location = first_line(tmp_path, code)
    assert location is not None
    assert location.confirmed
    assert "scores = q @ k.mT" in location.code
    assert "made from the repeated key heads" in location.computed
    assert "made from the repeated turned key heads" in location.expected


@pytest.mark.proof
def test_keys_and_values_that_are_both_repeated_in_turn_are_named(tmp_path: Path) -> None:
    repeated = "repeat_interleave(self.heads // self.groups, dim=1)"
    assert CODE.count(repeated) == 2
    code = CODE.replace(repeated, "repeat(1, self.heads // self.groups, 1, 1)")
    code = code.replace("y = weights @ v", "y = (weights * 1.0) @ v")  # weights come from elsewhere
    location = first_line(tmp_path, code)
    assert location is not None
    assert location.code == TILED
    assert "dealt out in turn" in location.computed


@pytest.mark.proof
def test_line_of_complex_numbers_is_named(tmp_path: Path) -> None:
    start = CODE.index("def turn(")
    right = """\
def turn(x, cos, sin):
    pairs = torch.view_as_complex(x.unflatten(-1, (-1, 2)).contiguous())
    turned = pairs * torch.complex(cos, sin)
    return torch.view_as_real(turned).flatten(-2)


"""
    code = CODE[:start] + right + CODE[CODE.index("class Causal") :]
    assert first_line(tmp_path, code) is None
    wrong = code.replace("complex(cos, sin)", "complex(sin, cos)")
    chosen = {**TURNED, "rotary_pairs": "adjacent"}
    location = first_line(tmp_path, wrong, choices=chosen, anyway=True)
    assert location is not None
    assert location.confirmed
    assert location.code.startswith("turned = pairs *")
    assert location.computed == "sin + i cos of the angles"


NETWORK = """
from torch import nn
from torch.nn import functional as F


class FeedForward(nn.Module):
    def __init__(self, dim, hidden):
        super().__init__()
        self.gate, self.up = (nn.Linear(dim, hidden, bias=False) for _ in range(2))
        self.down = nn.Linear(hidden, dim, bias=False)

    def forward(self, x):
        return self.down(F.silu(self.gate(x)) * self.up(x))
"""


def test_activation_that_the_numbers_do_not_show_is_named(tmp_path: Path) -> None:
    code = NETWORK.replace("F.silu(self.gate(x)) * self.up(x)", "F.silu(self.up(x))")
    location = first_line(tmp_path, code, "FeedForward")
    assert location is not None
    assert location.computed == "silu(x W1 + b1) alone"
    assert location.confirmed


def test_value_that_is_too_large_to_be_kept_hides_the_line(tmp_path: Path, monkeypatch) -> None:
    code = CODE.replace("softmax(-1)", "softmax(-2)")
    assert first_line(tmp_path, code) is not None
    monkeypatch.setattr("attentest.analysis.lines.torch_recording.LARGEST", 150)
    assert first_line(tmp_path, code) is None
