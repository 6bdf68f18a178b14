"""The Python API."""

import pytest
import torch

import attentest
from attentest import check
from attentest.targets.adapt import Unclear
from attentest_spec import UnknownName, registry


def attend(query, key, value, mask=None):
    scores = query @ key.transpose(-1, -2) / query.shape[-1] ** 0.5
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))
    weights = scores.softmax(-1)
    return weights @ value, weights


def attend_without_scale(query, key, value, mask=None):
    return attend(query * query.shape[-1] ** 0.5, key, value, mask)


def test_names_of_the_api_are_completed():
    assert {*attentest.__all__} <= {*dir(attentest)}


@pytest.mark.proof
def test_a_bare_function_gets_a_verdict():
    report = check(attend, component="attention")
    assert report.conforms, str(report)
    assert report["attention.formula"].status == "pass"
    assert "in this process" in str(report)


@pytest.mark.proof
def test_a_wrong_function_is_told():
    report = check(attend_without_scale, component="attention")
    assert not report.conforms
    assert report["attention.formula"].status == "violation"
    assert "demands:" in report.text(full=True)
    assert "demands:" not in str(report)
    (cause, *_) = report.causes
    assert cause.clauses[0] == "attention.formula"
    assert cause.text == "Scores are not divided by the root of the key width."
    assert report.likely_cause == cause.text
    broken = {slug for one in report.causes if one.severity.fails for slug in one.clauses}
    assert {one.clause for one in report.failures} == broken
    assert repr(report).startswith("<Report on attend_without_scale: ")
    assert len(repr(report)) < 120
    assert report._repr_html_().count("<tr>") == len(report.causes) + 1


def test_a_module_is_called_as_it_is():
    class Attend(torch.nn.Module):
        def forward(self, query, key, value, mask=None):
            return attend(query, key, value, mask)

    assert check(Attend(), component="attention", clauses=["attention.formula"]).conforms


def test_a_function_needs_its_component():
    with pytest.raises(Unclear, match=r"says which component it is\. --as attention"):
        check(lambda query, key, value, mask=None: attend(query, key, value, mask))


def test_unknown_names_are_refused():
    with pytest.raises(UnknownName, match=r"attention\.formula"):
        check(attend, component="attention", clauses=["attention.formulla"])
    with pytest.raises(UnknownName, match="did you mean attention"):
        check(attend, component="atention")


def test_an_installed_backend_can_be_named():
    name = registry.installed()[0]
    report = check(name, component="attention", clauses=["attention.one-key"])
    assert report.name == name
    assert len(list(report)) == 1
