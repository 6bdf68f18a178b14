"""Questions about an option whose default does not compute the formula and another value does."""

import importlib
import sys

import pytest
from folders import SUPPORT
from proof import share

import attentest
from attentest.targets.adapt import Reading, Unclear, options
from attentest.targets.adapt.code import code_of

WILD = SUPPORT / "wild"
sys.path.insert(0, str(WILD))

optional = importlib.import_module("optional")
NORM = "layer_norm.formula"

ASKED = [
    (optional.GraphNorm, "layer_norm", "mode='node'", "mode='graph'", "mode=node"),
    (optional.ByAnnotation, "layer_norm", "scope='last'", "scope='all'", "scope=last"),
    (optional.Switched, "layer_norm", "whole=False", "whole=True", "whole=False"),
    (optional.attention, "attention", "score='scaled'", "score='dot'", "score=scaled"),
]
"""Code, its component, the value that computes it, the default, and the words to add."""


@pytest.mark.parametrize(("code", "component", "value", "default", "words"), ASKED)
def test_a_value_that_alone_gives_the_formula_is_asked_about(
    code, component, value, default, words
):
    with pytest.raises(Unclear) as failure:
        attentest.adapted(code, component)
    text = str(failure.value)
    assert "\n" not in text
    assert f"With {value}, {code.__name__} computes {component}; with its default {default}" in text
    assert f"--give {words} or --give {default.replace(chr(39), '')}" in text


@pytest.mark.proof
def test_a_function_that_no_formula_has_is_asked_about():
    text = "With activation=None, ActiveProjections computes multi_head_attention; .*=relu it does"
    with pytest.raises(Unclear, match=text):
        attentest.adapted(optional.ActiveProjections, "multi_head_attention")
    given, slug = {"activation": None}, "multi_head_attention.formula"
    report = attentest.check(
        optional.ActiveProjections, "multi_head_attention", given=given, clauses=[slug]
    )
    assert report[slug].status == "pass", report[slug]


@pytest.mark.proof
def test_a_function_beside_a_mistake_excuses_nothing():
    attentest.adapted(optional.ActiveAndUnscaled, "multi_head_attention")  # and is judged


@pytest.mark.parametrize(("mode", "status"), [("node", "pass"), ("graph", "violation")])
def test_the_value_that_is_given_is_judged(mode, status):
    report = attentest.check(optional.GraphNorm, "layer_norm", given={"mode": mode}, clauses=[NORM])
    assert report[NORM].status == status, report[NORM]


def test_code_is_judged_with_its_defaults_where_the_user_wants_it():
    report = attentest.check(optional.GraphNorm, "layer_norm", anyway=True, clauses=[NORM])
    assert report[NORM].status == "violation"


FAULTY = [
    (optional.BrokenEverywhere, "layer_norm", NORM),
    (optional.TwoWays, "layer_norm", NORM),
    (optional.FeedForward, "feed_forward", "feed_forward.formula"),
    (optional.WrongWhenLast, "encoder_layer", "encoder.layer-formula"),
]
"""Mistakes in code with options that do not explain them; the clause that detects each."""


@pytest.mark.parametrize(
    ("code", "tried"),
    [
        (optional.GraphNorm, [{"mode": "node"}]),
        (optional.TwoWays, [{"mode": "node"}, {"mode": "row"}]),
        (optional.FeedForward, [{"bias": False}]),
        (optional.WrongWhenLast, []),
    ],
)
def test_values_are_tried_that_the_source_or_the_documentation_names(code, tried):
    reading = Reading(component="layer_norm" if "mode" in str(tried) else "encoder_layer")
    asked = []
    options.demand_default(
        code_of(code, reading), reading, lambda other: asked.append(other.given), {}
    )
    assert asked == tried


@share(4, rest=1)
@pytest.mark.parametrize(("code", "component", "slug"), FAULTY)
def test_a_mistake_beside_an_unrelated_option_is_reported(code, component, slug):
    report = attentest.check(code, component, clauses=[slug])
    assert report[slug].status == "violation", report[slug]
