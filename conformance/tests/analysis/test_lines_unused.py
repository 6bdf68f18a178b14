"""Lines of results and modules that are not used, and of fills that leave a weight."""

import inspect
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from user_files import write_files

import attentest
from attentest.analysis.lines import cases
from attentest.analysis.lines.effects import weak_fill
from attentest.analysis.lines.locate import locate
from attentest.judging.bench import Bench
from attentest.judging.judge import judge
from attentest_spec import Sizes
from attentest_spec.torch import of_function


def forgetful(query, key, value, mask):
    scores = query @ key.mT / query.shape[-1] ** 0.5
    if mask is not None:
        scores.masked_fill(~mask, -torch.inf)
    return scores.softmax(-1) @ value


def scaled_later(query, key, value, mask):
    scores = query @ key.mT
    if mask is not None:
        scores.masked_fill(~mask, -torch.inf)
    return (scores / query.shape[-1] ** 0.5).softmax(-1) @ value


def hidden_otherwise(query, key, value, mask):
    scores = query @ key.mT
    if mask is not None:
        scores.masked_fill(mask, -torch.inf)
    return (scores / query.shape[-1] ** 0.5).softmax(-1) @ value


def looked_at(query, key, value, mask):
    scores = query @ key.mT
    scores.softmax(-1).amax()  # not the step that is missing
    if mask is not None:
        scores = scores.masked_fill(~mask, -torch.inf)
    return scores.softmax(-1) @ value


IN_LIBRARY = """
def is_open(scores, mask):
    return bool((scores.masked_fill(~mask, -float("inf")) == scores).all())
"""
LIBRARY = {}
exec(compile(IN_LIBRARY, str(Path(torch.__file__).with_name("compared.py")), "exec"), LIBRARY)


def compared_by_a_library(query, key, value, mask):
    scores = query @ key.mT / query.shape[-1] ** 0.5
    if mask is not None:
        LIBRARY["is_open"](scores, mask)
    return scores.softmax(-1) @ value


def located(function):
    subject = Bench(of_function(function, "attention")).subject()
    wrong = next(cases.own_cases(subject, "attention"))
    lines, first = inspect.getsourcelines(function)
    location = locate(subject, wrong.steps, {})
    return location, lines[location.line - first]


@pytest.mark.parametrize("function", [forgetful, scaled_later])
def test_line_whose_right_result_is_not_used_is_named(function):
    location, line = located(function)
    assert "scores.masked_fill" in line
    assert location.step == "masked scores"
    assert location.computed == "the expected value, but no later line uses it"
    assert location.confirmed


def test_fill_of_other_entries_that_is_not_used_is_not_named():
    location, line = located(hidden_otherwise)
    assert location.computed != "the expected value, but no later line uses it"
    assert "masked_fill" not in line


def test_other_result_that_is_not_used_is_not_named():
    location, line = located(looked_at)
    assert "amax" not in line
    assert location.step == "scaled scores"


def test_value_that_a_library_makes_to_compare_with_it_is_no_result_of_the_user():
    location, line = located(compared_by_a_library)
    assert location.computed != "the expected value, but no later line uses it"
    assert "is_open" not in line


MODEL = """
import math

from torch import nn


class MultiHeadAttention(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads, self.maps = heads, nn.ModuleList(nn.Linear(dim, dim) for _ in range(4))
        self.gate = nn.Sequential(nn.Linear(dim, dim))

    def forward(self, q, k, v):
        q, k, v = (
            part(x).unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for part, x in zip(self.maps, (q, k, v))
        )
        weights = (q @ k.mT / math.sqrt(q.shape[-1])).softmax(-1)
        return self.maps[3]((weights @ v).transpose(1, 2).flatten(2))
"""
COUNT = "multi_head_attention.parameter-count"


def counted(folder, text, **reading):
    write_files(folder, own=text)
    backend = attentest.adapted(f"{folder / 'own.py'}:MultiHeadAttention", **reading)
    return judge(Bench(backend), COUNT)


def test_module_that_no_call_uses_is_named_where_it_is_made(tmp_path):
    location = counted(tmp_path, MODEL).location
    assert location.code == "self.gate = nn.Sequential(nn.Linear(dim, dim))"
    assert location.computed == "gate is made here, and no call uses its trained parameters"


@pytest.mark.proof
def test_no_line_is_named_where_the_numbers_are_wrong_or_every_part_is_used(tmp_path):
    unscaled = MODEL.replace(" / math.sqrt(q.shape[-1])", "")
    assert counted(tmp_path, unscaled, anyway=True).location is None
    right = MODEL.replace("self.gate = nn.Sequential(nn.Linear(dim, dim))", "")
    assert counted(tmp_path, right).status == "pass"


SMALL = MODEL.replace("k, v):", "k, v, mask):").replace(
    "weights = (q @ k.mT / math.sqrt(q.shape[-1])).softmax(-1)",
    """scores = q @ k.mT / math.sqrt(q.shape[-1])
        fill = -100.0
        weights = scores.masked_fill(~mask, fill).softmax(-1)""",
)


def test_fill_that_leaves_masked_keys_a_weight_is_named(tmp_path):
    write_files(tmp_path, own=SMALL.replace("self.gate = nn.Sequential(nn.Linear(dim, dim))", ""))
    backend = attentest.adapted(f"{tmp_path / 'own.py'}:MultiHeadAttention")
    verdict = judge(Bench(backend), "multi_head_attention.gradient-to-masked-keys")
    assert verdict.location.code == "weights = scores.masked_fill(~mask, fill).softmax(-1)"
    assert "filled with -100" in verdict.location.computed


def test_fill_that_leaves_no_weight_is_no_cause_of_a_gradient():
    for fill, is_named in ((-100.0, True), (-1e4, False)):

        def attend(query, key, value, mask, fill=fill):
            scores = query @ key.mT / query.shape[-1] ** 0.5
            return scores.masked_fill(~mask, fill).softmax(-1) @ value

        backend = replace(of_function(attend, "attention"), choices={"mask_fill": fill})
        subject = Bench(backend).subject()
        part = subject.part("attention", Sizes(d_model=4, heads=2))
        x, mask = np.ones((1, 2, 3, 4)), np.tril(np.ones((1, 1, 3, 3), dtype=bool))
        part.vjp((x, x, x, mask), np.ones(x.shape))
        assert (weak_fill(subject, subject.trace) is not None) == is_named
