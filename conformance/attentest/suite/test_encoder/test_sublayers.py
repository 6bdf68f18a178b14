"""Checks of the chapter `encoder`: a layer and its two sublayers."""

from functools import partial

from attentest.harness.subject import Subject
from attentest.judging.check import check
from attentest.suite.test_encoder.cases import LAST, LAYER, scale
from attentest.testing.draw import Draw
from attentest.testing.gradients import gradients_match_formula
from attentest.testing.layer_calls import (
    draw_call,
    matches_reference,
    matches_reference_in_use,
    shows_one_option,
    zero_maps,
)
from attentest.testing.sizes_in_use import LONG, MANY, WIDE, at_sizes_in_use
from attentest.testing.stacks import shares_one_norm

NORMS = tuple(
    f"{name}_norm.{leaf}"
    for name in ("self_attention", "feed_forward")
    for leaf in ("gain", "bias")
)


@check(
    "encoder.layer-formula",
    examples=8,
    in_use=at_sizes_in_use(partial(matches_reference_in_use, LAYER), WIDE, MANY, LONG),
)
def test_layer_formula(subject: Subject, draw: Draw) -> None:
    matches_reference(draw_call(subject, draw, LAYER, widths=(3, 4, 2), scale=scale(subject, draw)))


@check("encoder.norm-placement", examples=2)
def test_norm_placement(subject: Subject, draw: Draw) -> None:
    case = draw_call(subject, draw, LAYER)
    shows_one_option(case, case.output(), "norm_placement", {})


@check("encoder.norm-sharing", examples=2)
def test_norm_sharing(subject: Subject, draw: Draw) -> None:
    case = draw_call(subject, draw, LAYER)
    matches_reference(case)
    if subject.choices.norm_sharing == "shared":
        shares_one_norm(case)


@check("encoder.order-of-sublayers", examples=2)
def test_order_of_sublayers(subject: Subject, draw: Draw) -> None:
    case = draw_call(subject, draw, LAYER, kinds=("none", "padding"), scale=draw.choose((1.0, 0.1)))
    matches_reference(case)


@check("encoder.skip-connections", examples=2)
def test_skip_connections(subject: Subject, draw: Draw) -> None:
    case = draw_call(subject, draw, LAYER)
    for silent in ((LAST[0],), (LAST[1],), LAST):
        bare = case.probe.parameters
        case.probe.load(zero_maps(bare, silent))
        matches_reference(case, what=f"output with zeros in {' and '.join(silent)}")
        case.probe.load(bare)


@check("encoder.separate-norms", examples=2)
def test_separate_norms(subject: Subject, draw: Draw) -> None:
    case = draw_call(subject, draw, LAYER, kinds=("padding", "none"))
    norms = [name for name in NORMS if name in case.probe.parameters]
    gradients_match_formula(case.probe, *case.with_all_visible().inputs, names=norms, draw=draw)
