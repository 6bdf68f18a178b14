"""Checks of the chapter `encoder`: gradients and modes."""

from attentest.harness.errors import Absent
from attentest.harness.subject import Subject
from attentest.judging.check import check
from attentest.suite.test_encoder.cases import LAST, LAYER, STACK
from attentest.testing.dependence import depends_on_visible_positions
from attentest.testing.draw import Draw
from attentest.testing.gradients import agrees_with_differences, every_parameter_reached
from attentest.testing.layer_calls import draw_call
from attentest.testing.stacks import (
    ALMOST_ALL,
    drops_all_branches,
    drops_branches_at_the_rate,
    repeats_in_evaluation,
)


@check("encoder.every-parameter-reached", examples=2)
def test_every_parameter_reached(subject: Subject, draw: Draw) -> None:
    if subject.precision != "float64":
        raise Absent("float64 alone tells a small gradient from none")
    kinds, layers = ("none", "padding"), draw.deepest()
    case = draw_call(subject, draw, STACK, kinds=kinds, shortest=3, batch=2, layers=layers)
    every_parameter_reached(case.probe, *case.with_all_visible().inputs, draw=draw)
    agrees_with_differences(case.probe, *case.with_all_visible().inputs, draw=draw)


@check("encoder.eval-reaches-every-layer", examples=2)
def test_eval_reaches_every_layer(subject: Subject, draw: Draw) -> None:
    rate = draw.choose((0.5, 0.8)) if subject.limits.dropout else 0.0
    case = draw_call(subject, draw, STACK, mapped=False, dropout=rate, shortest=2)
    repeats_in_evaluation(case)
    depends_on_visible_positions(draw, case, case.output())


@check("encoder.dropout-on-sublayers", examples=2)
def test_dropout_on_sublayers(subject: Subject, draw: Draw) -> None:
    if not subject.limits.dropout:
        raise Absent(f"{subject.name} has no dropout")
    case = draw_call(subject, draw, LAYER, kinds=("none",), dropout=ALMOST_ALL, shortest=3, batch=2)
    drops_all_branches(case, LAST)
    drops_branches_at_the_rate(subject, draw, LAYER, LAST)


@check("encoder.gradient", examples=2)
def test_gradient(subject: Subject, draw: Draw) -> None:
    case = draw_call(subject, draw, LAYER, mapped=False, kinds=("padding", "none", "causal"))
    agrees_with_differences(case.probe, *case.with_all_visible().inputs, draw=draw)
