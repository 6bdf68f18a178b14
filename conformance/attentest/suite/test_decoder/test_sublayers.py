"""Checks of the chapter `decoder`: a layer and its three sublayers."""

from functools import partial

from attentest.harness.subject import Subject
from attentest.judging.check import check
from attentest.suite.test_decoder.cases import LAST, LAYER, TARGET
from attentest.testing.draw import Draw
from attentest.testing.gradients import gradients_match_formula
from attentest.testing.layer_calls import (
    draw_call,
    matches_reference,
    matches_reference_in_use,
    zero_maps,
)
from attentest.testing.sizes_in_use import LONG, MANY, WIDE, at_sizes_in_use

SUBLAYERS = ("self_attention", "cross_attention", "feed_forward")
NORMS = tuple(f"{name}_norm.{leaf}" for name in SUBLAYERS for leaf in ("gain", "bias"))


@check(
    "decoder.layer-formula",
    examples=8,
    in_use=at_sizes_in_use(partial(matches_reference_in_use, LAYER), WIDE, MANY, LONG),
)
def test_layer_formula(subject: Subject, draw: Draw) -> None:
    kinds = ("per-sample", "padding", "none", "per-head")
    x = draw.scale() if subject.precision == "float64" else 1.0
    matches_reference(
        draw_call(subject, draw, LAYER, source_kinds=kinds, widths=(3, 4, 2), scale=x)
    )


@check("decoder.order-of-sublayers", examples=2)
def test_order_of_sublayers(subject: Subject, draw: Draw) -> None:
    matches_reference(draw_call(subject, draw, LAYER, kinds=TARGET, scale=draw.choose((1.0, 0.1))))


@check("decoder.skip-connections", examples=2)
def test_skip_connections(subject: Subject, draw: Draw) -> None:
    case = draw_call(subject, draw, LAYER, kinds=TARGET)
    kept = case.probe.parameters
    for silent in ((LAST[0],), (LAST[1],), (LAST[2],), LAST):
        case.probe.load(zero_maps(kept, silent))
        matches_reference(case, what=f"output with zeros in {' and '.join(silent)}")
    case.probe.load(kept)


@check("decoder.separate-norms", examples=2)
def test_separate_norms(subject: Subject, draw: Draw) -> None:
    case = draw_call(subject, draw, LAYER, kinds=("causal", "none"), shortest=2)
    norms = [name for name in NORMS if name in case.probe.parameters]
    gradients_match_formula(case.probe, *case.inputs, names=norms, draw=draw)
