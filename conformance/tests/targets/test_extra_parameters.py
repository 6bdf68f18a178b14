"""A parameter that the spec has no place for is asked about where the output depends on it."""

import sys

import pytest
from folders import SUPPORT

import attentest
from attentest.targets.adapt import Unclear

WILD = SUPPORT / "wild"
sys.path.insert(0, str(WILD))
FILE = WILD / "extra_parameters.py"


@pytest.mark.parametrize(
    ("name", "component", "parameter"),
    [
        ("ScaledHeads", "multi_head_attention", "head_scale"),
        ("ShiftedFeedForward", "feed_forward", "shift"),
        ("OfDistances", "multi_head_attention", "head_scale"),
    ],
)
def test_a_parameter_that_begins_without_effect_is_asked_about(
    name: str, component: str, parameter: str
) -> None:
    with pytest.raises(Unclear, match=f"no place for its parameters {parameter}"):
        attentest.adapted(f"{FILE}:{name}", component)


@pytest.mark.proof
def test_a_wrong_use_of_such_a_parameter_does_not_conform() -> None:
    with pytest.raises(Unclear, match="no place for head_scale"):
        attentest.adapted(f"{FILE}:ScaledTwice", "multi_head_attention")


@pytest.mark.parametrize(
    ("name", "status", "said"),
    [
        ("UnusedScale", "violation", "head_scale"),
        ("FixedFactor", "pass", ""),
        ("FixedQuery", "violation", "key.weight"),
    ],
)
def test_trained_parameters_alone_are_counted(name: str, status: str, said: str) -> None:
    slug = "multi_head_attention.parameter-count"
    report = attentest.check(f"{FILE}:{name}", "multi_head_attention", clauses=[slug])
    assert report[slug].status == status, str(report)
    assert said in report[slug].message


def test_the_switch_that_leaves_a_parameter_out_is_named() -> None:
    with pytest.raises(Unclear, match=r"--give add_key=False .*: with it the numbers are those of"):
        attentest.adapted(f"{FILE}:KeyOfItsOwn", "multi_head_attention")
    report = attentest.check(
        f"{FILE}:KeyOfItsOwn",
        "multi_head_attention",
        given={"add_key": False},
        clauses=["multi_head_attention.formula"],
    )
    assert report.conforms
