"""Checks of the chapter `decoder`: gradients and modes."""

from attentest.harness.errors import Absent
from attentest.harness.subject import Subject
from attentest.judging.check import check
from attentest.suite.test_decoder.cases import FREE, LAST, LAYER, STACK, TARGET
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


@check("decoder.every-parameter-reached", examples=2)
def test_every_parameter_reached(subject: Subject, draw: Draw) -> None:
    if subject.precision != "float64":
        raise Absent("float64 alone tells a small gradient from none")
    kinds = ("causal", "none")
    case = draw_call(
        subject,
        draw,
        STACK,
        kinds=kinds,
        source_kinds=FREE,
        shortest=3,
        batch=2,
        layers=draw.deepest(),
    )
    every_parameter_reached(case.probe, *case.inputs, draw=draw)
    agrees_with_differences(case.probe, *case.inputs, draw=draw)


@check("decoder.eval-reaches-every-layer", examples=2)
def test_eval_reaches_every_layer(subject: Subject, draw: Draw) -> None:
    rate = draw.choose((0.5, 0.8)) if subject.limits.dropout else 0.0
    case = draw_call(subject, draw, STACK, mapped=False, kinds=TARGET, dropout=rate, shortest=2)
    repeats_in_evaluation(case)
    depends_on_visible_positions(draw, case, case.output())


@check("decoder.dropout-on-sublayers", examples=2)
def test_dropout_on_sublayers(subject: Subject, draw: Draw) -> None:
    if not subject.limits.dropout:
        raise Absent(f"{subject.name} has no dropout")
    kinds = ("causal", "none")
    case = draw_call(subject, draw, LAYER, kinds=kinds, dropout=ALMOST_ALL, shortest=3, batch=2)
    drops_all_branches(case, LAST)
    drops_branches_at_the_rate(subject, draw, LAYER, LAST)


@check("decoder.gradient", examples=2)
def test_gradient(subject: Subject, draw: Draw) -> None:
    case = draw_call(subject, draw, LAYER, mapped=False, kinds=("causal", "none"))
    agrees_with_differences(case.probe, *case.inputs, draw=draw)
