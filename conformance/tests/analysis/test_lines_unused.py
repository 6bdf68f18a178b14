"""Lines whose result is right, and that no later line uses."""

import inspect

import torch

from attentest.analysis.lines import cases
from attentest.analysis.lines.locate import locate
from attentest.judging.bench import Bench
from attentest_spec.torch import of_function


def forgetful(query, key, value, mask):
    scores = query @ key.mT / query.shape[-1] ** 0.5
    if mask is not None:
        scores.masked_fill(~mask, -torch.inf)
    return scores.softmax(-1) @ value


def looked_at(query, key, value, mask):
    scores = query @ key.mT
    scores.softmax(-1).amax()  # not the step that is missing
    if mask is not None:
        scores = scores.masked_fill(~mask, -torch.inf)
    return scores.softmax(-1) @ value


def located(function):
    subject = Bench(of_function(function, "attention")).subject()
    wrong = next(cases.own_cases(subject, "attention"))
    lines, first = inspect.getsourcelines(function)
    location = locate(subject, wrong.steps, {})
    return location, lines[location.line - first]


def test_line_whose_right_result_is_not_used_is_named():
    location, line = located(forgetful)
    assert "scores.masked_fill" in line
    assert location.step == "masked scores"
    assert location.computed == "the expected value, but no later line uses it"
    assert location.confirmed


def test_other_result_that_is_not_used_is_not_named():
    location, line = located(looked_at)
    assert "amax" not in line
    assert location.step == "scaled scores"
