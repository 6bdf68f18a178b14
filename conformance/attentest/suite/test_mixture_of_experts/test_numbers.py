"""Checks of the chapter `mixture_of_experts`: the numbers, in every precision."""

from dataclasses import replace

from attentest.harness.errors import Absent
from attentest.harness.subject import Subject
from attentest.judging.check import check
from attentest.suite.test_mixture_of_experts.cases import (
    COMPONENT,
    MixtureCall,
    draw_call,
    draw_rows,
    draw_scale,
    draw_sizes,
)
from attentest.testing.common import Call, half_precisions, matches_in_precision, same_precision
from attentest.testing.draw import Draw
from attentest.testing.invariants import agree_up_to_rounding, build_with_parameters
from attentest.testing.sizes_in_use import LONG, MANY, WIDE, SizesInUse, at_sizes_in_use


def _formula_in_use(subject: Subject, draw: Draw, size: SizesInUse) -> None:
    sizes = size.sizes(subject).but(experts=8)
    draw_call(subject, draw, sizes=sizes, shape=(size.batch, size.length)).checked_output()


@check(
    "mixture_of_experts.formula",
    examples=10,
    in_use=at_sizes_in_use(_formula_in_use, replace(WIDE, inner=96), MANY, LONG),
)
def test_formula(subject: Subject, draw: Draw) -> None:
    draw_call(subject, draw, scale=draw_scale(subject, draw)).checked_output()


@check("mixture_of_experts.all-chosen")
def test_all_chosen(subject: Subject, draw: Draw) -> None:
    count = draw.choose((4, 3, 2, 5))
    draw_call(subject, draw, sizes=draw_sizes(draw, experts=count, chosen=count)).checked_output()


@check("mixture_of_experts.one-chosen", examples=10)
def test_one_chosen(subject: Subject, draw: Draw) -> None:
    shape = draw.choose(((1, 1), (2, 1), (1, 3), (2, 3)))
    case = draw_call(subject, draw, sizes=draw_sizes(draw, chosen=1), shape=shape)
    before = case.checked_output()
    if subject.choices.routing_weights != "renormalised":
        return
    if subject.choices.router_bias == "in-scores":
        return  # it decides more of the choice where the weight is smaller
    case.probe.load(
        {**case.probe.parameters, "router.weight": 0.5 * case.probe.parameters["router.weight"]}
    )
    if subject.choices.router_bias == "in-choice-alone":
        case.checked_output()
        return
    agree_up_to_rounding(
        case.probe,
        case.x,
        actual=case.output(),
        expected=before,
        what="output of one expert after halving the router",
    )


@check("mixture_of_experts.shapes")
def test_shapes(subject: Subject, draw: Draw) -> None:
    probe = build_with_parameters(subject, draw, COMPONENT, draw_sizes(draw))
    batch, length = draw.choose(((1, 1), (1, 0), (0, 1), (0, 0)))
    x = draw_rows(draw, probe, batch or draw.batch(), length or draw.length())
    same_precision(probe, MixtureCall(probe, x).checked_output())


@check("mixture_of_experts.large-scores")
def test_large_scores(subject: Subject, draw: Draw) -> None:
    wide = [one for one in ("float64", "float32") if one in subject.limits.precisions]
    if not wide:
        raise Absent(f"{subject.name} computes in half precision alone")
    sizes = draw_sizes(draw, experts=4, chosen=2, width=6)  # two sigmoids may be 1 in it
    for precision in wide:
        draw_call(subject, draw, sizes=sizes, scale=5e3, precision=precision).checked_output()


@check("mixture_of_experts.float32")
def test_float32(subject: Subject, draw: Draw) -> None:
    matches_in_precision(lambda precision: _call(subject, draw, precision), "float32")


@check("mixture_of_experts.half-precision")
def test_half_precision(subject: Subject, draw: Draw) -> None:
    for precision in half_precisions(subject):
        matches_in_precision(lambda one: _call(subject, draw, one), precision)


def _call(subject: Subject, draw: Draw, precision: str) -> Call:
    case = draw_call(subject, draw, precision=precision)
    return case.probe, (case.x,)
