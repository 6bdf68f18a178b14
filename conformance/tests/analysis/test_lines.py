"""The line at which the numbers of torch code first leave the reference's."""

import importlib.util
import inspect
import os
from pathlib import Path

import numpy as np
import pytest
import torch
from miniatures import wrong
from styles_of_attention import attend
from torch import nn

from attentest import adapted
from attentest.analysis.lines import Locator, alignment, cases, recording
from attentest.analysis.lines.alignment import Alignment
from attentest.analysis.lines.formula import Formula
from attentest.analysis.lines.formulas import build
from attentest.analysis.lines.inputs import SIZES
from attentest.analysis.lines.layouts import layouts, orders
from attentest.analysis.lines.locate import locate
from attentest.harness.oracle import Reference
from attentest.harness.subject import Subject
from attentest.judging.bench import Bench
from attentest.judging.judge import judge
from attentest_spec import COMPONENTS, Choices, Sizes
from attentest_spec.components import inside
from attentest_spec.parameters import draw
from attentest_spec.torch import of_function


def line_of(function, text):
    lines, first = inspect.getsourcelines(function)
    (number,) = (first + place for place, line in enumerate(lines) if text in line)
    return number


def located(backend, component):
    """Return the line of the first wrong call of a backend; nothing is judged."""
    subject = Bench(backend).subject()
    wrong_case = next(cases.own_cases(subject, component), None)
    with np.errstate(all="ignore"):
        return wrong_case and locate(subject, wrong_case.steps, {})


def unscaled(query, key, value, mask):
    scores = query @ key.mT
    if mask is not None:
        scores = scores.masked_fill(~mask, -torch.inf)
    weights = scores.softmax(-1)
    return weights @ value


def over_queries(query, key, value, mask):
    scores = query @ key.mT * query.shape[-1] ** -0.5
    if mask is not None:
        scores = scores.masked_fill(~mask, -1e9)
    return scores.softmax(-2) @ value


def fused(query, key, value, mask):
    return nn.functional.scaled_dot_product_attention(query, key, value, mask, scale=1.0)


def head_by_head(query, key, value, mask):
    outputs = []
    for head in range(query.shape[1]):
        q, k, v = query[:, head], key[:, head], value[:, head]
        scores = q @ k.mT / q.shape[-1]
        if mask is not None:
            keep = mask.expand(len(q), query.shape[1], *scores.shape[1:])[:, head]
            scores = scores.masked_fill(~keep, -torch.inf)
        outputs.append(scores.softmax(-1) @ v)
    return torch.stack(outputs, 1)


def inverted(query, key, value, mask):
    scores = query @ key.mT / query.shape[-1] ** 0.5
    if mask is not None:
        scores = scores.masked_fill(mask, -1e9)
    return scores.softmax(-1) @ value


@pytest.mark.parametrize(
    ("function", "code", "step", "computed"),
    [
        (unscaled, "scores.softmax(-1)", "scaled scores", "without a division by sqrt(d_k)"),
        (over_queries, "scores.softmax(-2)", "weights", "over the queries"),
        (fused, "scale=1.0", "scaled scores", "without a division by sqrt(d_k)"),
        (head_by_head, "q @ k.mT / q", "scaled scores", "/ d_k, where d_k = 8"),
        (inverted, "masked_fill(mask", "masked scores", "inverted"),
    ],
)
def test_line_of_wrong_attention_is_named_and_confirmed(function, code, step, computed):
    location = located(of_function(function, "attention"), "attention")
    assert location is not None
    assert Path(location.file) == Path(__file__)
    assert location.line == line_of(function, code)
    assert code in location.code
    assert location.step == step
    assert computed in location.computed
    assert location.confirmed


def test_sound_code_has_no_line():
    subject = Bench(of_function(attend, "attention")).subject()
    assert list(cases.own_cases(subject, "attention")) == []


def test_code_that_is_not_torch_has_no_line():
    assert located(wrong, "attention") is None


def test_answer_at_random_has_the_line_that_draws_alone():
    def noisy(query, key, value, mask):
        kept = value + torch.rand(1, dtype=query.dtype)
        return attend(query, key, kept, mask) * 2

    location = located(of_function(noisy, "attention"), "attention")
    assert location.line == line_of(noisy, "torch.rand")
    assert location.computed == "rand draws random numbers in evaluation mode"
    assert not location.confirmed


def test_verdict_of_a_violation_holds_the_line(monkeypatch):
    monkeypatch.setattr("attentest.judging.judge.diagnose", lambda *_: ())
    bench = Bench(of_function(over_queries, "attention"), shrink=False, effort=0.1)
    location = judge(bench, "attention.formula").location
    assert location is not None
    assert location.line == line_of(over_queries, "scores.softmax(-2)")
    assert location.confirmed


def test_locator_never_costs_a_verdict(monkeypatch):
    def broken(*_):
        raise ZeroDivisionError

    monkeypatch.setattr("attentest.analysis.lines.locate.locate", broken)
    subject = Bench(of_function(over_queries, "attention")).subject()
    wrong_case = next(cases.own_cases(subject, "attention"))
    assert Locator().locate(subject, wrong_case.steps) is None


def test_line_whose_input_an_earlier_line_may_have_mixed_up_is_suspected():
    def crossed(query, key, value, mask):
        first = torch.einsum("bhqe->bhqe", query)
        second = torch.einsum("bhke->bhke", key)
        scores = torch.einsum("bhqe,bhke->bhkq", first, second) / query.shape[-1] ** 0.5
        if mask is not None:
            scores = scores.masked_fill(~mask.mT, -torch.inf)
        return torch.einsum("bhkq,bhke->bhqe", scores.softmax(-1), value)

    location = located(of_function(crossed, "attention"), "attention")
    assert location.line == line_of(crossed, "softmax(-1)")
    assert location.confirmed  # the lines after the product go with its order

    def turned(query, key, value, mask):
        scores = torch.einsum("bhqe,bhke->bhqk", query, key) / query.shape[-1] ** 0.5
        merged = torch.einsum("bhqk,bhke->bhqe", scores.softmax(-1), value)
        batch, heads, queries, _ = query.shape
        return merged.reshape(batch, queries, heads, -1).swapaxes(1, 2)

    location = located(of_function(turned, "attention"), "attention")
    assert location.line == line_of(turned, "swapaxes")
    assert not location.confirmed  # the einsum above may have been meant as bqhe


def test_constant_that_is_one_by_chance_proves_nothing():
    def centred(query, key, value, mask):
        value = value - value.mean(-2, keepdim=True)
        return attend(query, key, value, mask)

    subject = Bench(of_function(centred, "attention")).subject()
    part = subject.part("attention", SIZES)
    one = np.ones((1, 1, 1, 2))
    part(one, one, 3 * one, None)
    location = locate(subject, subject.trace, {("attention", ""): None})
    assert location is None or not location.confirmed


def test_words_have_the_sizes_of_the_example_that_is_shown():
    subject = Bench(of_function(unscaled, "attention")).subject()
    rng = np.random.default_rng(0)
    part = subject.part("attention", SIZES)
    part(*(rng.normal(size=(1, 1, length, 3)) for length in (2, 4, 4)), None)
    location = locate(subject, subject.trace, {})
    assert location.confirmed
    assert location.expected == "scores / sqrt(d_k), where sqrt(d_k) = 1.73"


def test_factor_that_other_sizes_change_is_no_constant():
    def cubic(query, key, value, mask):
        return attend(query * query.shape[-1] ** (1 / 6), key, value, mask)

    location = located(of_function(cubic, "attention"), "attention")
    assert location.confirmed
    assert location.computed == "a multiple of query"


def test_call_that_is_given_another_value_is_named_where_the_right_one_is_known():
    def project(x, weight):
        return x @ weight

    def attention(query, key, value, mask):
        eye = torch.eye(query.shape[-1], dtype=query.dtype)
        shifted = project(key, eye), project(query, eye)
        scores = shifted[1] @ shifted[0].mT / query.shape[-1] ** 0.5
        if mask is not None:
            scores = scores.masked_fill(~mask, -torch.inf)
        return scores.softmax(-1) @ project(key[..., : value.shape[-1]], eye)

    location = located(of_function(attention, "attention"), "attention")
    assert location is None or location.line == line_of(attention, "scores.softmax(-1) @ project")


def test_two_mistakes_are_not_confirmed():
    def twice(query, key, value, mask):
        weights = unscaled(query, key, torch.eye(key.shape[-2], dtype=key.dtype), mask)
        return weights @ value.abs()

    location = located(of_function(twice, "attention"), "attention")
    assert location is None or not location.confirmed


@pytest.mark.parametrize("component", [one for one in COMPONENTS if one in inside("model")])
@pytest.mark.parametrize(
    "choices",
    [
        Choices(),
        Choices().but(
            norm_placement="pre",
            final_norm="present",
            norm_epsilon_place="added-to-deviation",
            norm_variance="unbiased",
            norm_bias="none",
            embedding_scale="none",
            positional_encoding="halves",
            embedding_norm="present",
            activation="gelu",
            feed_forward_bias="none",
            projection_bias="present",
            logit_scale="inverse-sqrt-d",
            output="log-probabilities",
            generator_bias="none",
        ),
        Choices().but(positional_encoding="learned", output="logits", norm_sharing="shared"),
    ],
    ids=["paper", "others", "learned"],
)
def test_formula_is_the_references(component, choices):
    subject = Subject(Reference(choices), choices=choices)
    cases._call(
        subject, component, "", "per-sample" if component not in cases._UNMASKED else "none", 2
    )
    question = subject.trace[-1].question
    formula = Formula(question.probe.sizes, choices, question.probe.parameters)
    given = dict(zip(COMPONENTS[component].inputs, question.inputs, strict=True))
    build(formula, component, "", given)
    expected = question.probe.expected(*question.inputs).output
    np.testing.assert_allclose(formula.output.value, expected, rtol=1e-12, atol=1e-13)


def test_line_of_an_installed_package_is_named(tmp_path, monkeypatch):
    home = tmp_path / "site" / "pack"
    home.mkdir(parents=True)
    (home / "att.py").write_text(PACKAGE, encoding="utf-8")
    spec = importlib.util.spec_from_file_location("pack_att", home / "att.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for one in (recording, alignment):
        monkeypatch.setattr(one, "installed", lambda: (f"{tmp_path / 'site'}{os.sep}",))
    location = located(of_function(module.attend, "attention"), "attention")
    assert (Path(location.file), location.line) == (home / "att.py", 3)
    assert location.confirmed


PACKAGE = """def attend(query, key, value, mask):
    scores = query @ key.mT
    return scores.softmax(-1) @ value
"""


def test_line_that_ends_a_gradient_is_named():
    def cut(query, key, value, mask):
        scores = query @ key.mT / query.shape[-1] ** 0.5
        scores = scores - scores.amax(-1, keepdim=True).detach()
        weights = scores.softmax(-1)
        return weights.detach() @ value

    location = effect_of(cut)
    assert location.line == line_of(cut, "weights.detach()")
    assert location.computed == "the gradient ends at detach"
    assert not location.confirmed


def test_gradient_that_ends_where_it_is_zero_is_sound():
    def shifted(query, key, value, mask):
        scores = query @ key.mT / query.shape[-1] ** 0.5
        return (scores - scores.amax(-1, keepdim=True).detach()).softmax(-1) @ value

    assert effect_of(shifted) is None


def test_block_without_gradients_is_named():
    def cut(query, key, value, mask):
        with torch.no_grad():
            scores = query @ key.mT
            scores = scores / query.shape[-1] ** 0.5
        return scores.softmax(-1) @ value

    assert effect_of(cut).line == line_of(cut, "scores = query @ key.mT")
    assert torch.is_grad_enabled()


def effect_of(function):
    """Return the line that a gradient through `function` names."""
    subject = Bench(of_function(function, "attention")).subject()
    part = subject.part("attention", SIZES)
    x = np.random.default_rng(0).normal(size=(1, 2, 3, 4))
    part.vjp((x, x, x, None), np.ones(x.shape))
    return locate(subject, subject.trace, {})


def test_layout_keeps_heads_side_by_side():
    shape = (2, 3, 5, 8)
    assert orders(shape, "BHLE", (2, 5, 24)) == ((0, 2, 1, 3),)
    assert orders(shape, "BHLE", (5, 2, 3, 8))
    assert orders(shape, "BHLE", (6, 5, 8))
    assert not orders(shape, "BHLE", (2, 3, 8, 6))


def test_layout_refuses_heads_that_are_not_transposed_back():
    heads = np.arange(240.0).reshape(2, 3, 5, 8)
    wrong_order = heads.reshape(2, 5, 24)
    assert not any(np.array_equal(one, wrong_order) for one in layouts(heads, "BHLE", (2, 5, 24)))


def test_mask_that_allows_everything_is_not_missing():
    sizes = Sizes(heads=2, d_model=4, layers=1)
    choices = Choices().but(tying="none")
    formula = Formula(sizes, choices, draw("model", sizes, choices, np.random.default_rng(0)))
    tokens = np.arange(1, 7).reshape(2, 3)
    build(formula, "model", "", {"source": tokens, "target": tokens})
    steps = {one.name: one for one in formula.steps}
    masked = steps["encoder.layers.0.self_attention.masked scores"]
    beside = Alignment.__new__(Alignment)
    beside.covered = {one.number for one in formula.steps} - {
        masked.number,
        steps["padding mask of the source"].number,
    }
    scores = steps["encoder.layers.0.self_attention.scaled scores"]
    assert beside.neighbours(masked) == {scores.number}


@pytest.mark.proof
def test_submodule_that_was_not_given_its_mask_is_not_blamed(tmp_path):
    file = tmp_path / "layer.py"
    file.write_text(LAYER, encoding="utf-8")
    location = located(adapted(f"{file}:DecoderLayer", anyway=True), "decoder_layer")
    assert location is not None
    assert location.code == "x = self.norm2(x + self.cross_attn(x, memory, memory))"


LAYER = """
from torch import nn


class Attention(nn.Module):
    def __init__(self, d_model, heads):
        super().__init__()
        self.heads = heads
        self.q_proj, self.k_proj = nn.Linear(d_model, d_model), nn.Linear(d_model, d_model)
        self.v_proj, self.o_proj = nn.Linear(d_model, d_model), nn.Linear(d_model, d_model)

    def forward(self, query, key, value, mask=None):
        q, k, v = self.q_proj(query), self.k_proj(key), self.v_proj(value)
        q, k, v = (one.unflatten(-1, (self.heads, -1)).transpose(1, 2) for one in (q, k, v))
        scores = q @ k.mT / q.shape[-1] ** 0.5
        if mask is not None:
            scores = scores.masked_fill(mask == 0, -1e9)
        return self.o_proj((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))


class DecoderLayer(nn.Module):
    def __init__(self, d_model, heads, d_ff):
        super().__init__()
        self.self_attn, self.cross_attn = Attention(d_model, heads), Attention(d_model, heads)
        self.linear1, self.linear2 = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)
        self.norm1, self.norm2 = nn.LayerNorm(d_model), nn.LayerNorm(d_model)
        self.norm3 = nn.LayerNorm(d_model)

    def forward(self, x, memory, src_mask=None, tgt_mask=None):
        x = self.norm1(x + self.self_attn(x, x, x, tgt_mask))
        x = self.norm2(x + self.cross_attn(x, memory, memory))
        return self.norm3(x + self.linear2(self.linear1(x).relu()))
"""
