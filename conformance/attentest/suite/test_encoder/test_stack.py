"""Checks of the chapter `encoder`: layers on top of each other."""

from functools import partial

import numpy as np

from attentest.harness.subject import Subject
from attentest.judging.check import check
from attentest.suite.test_encoder.cases import LAYER, STACK, scale
from attentest.testing.common import Call, half_precisions, matches_in_precision
from attentest.testing.draw import Draw
from attentest.testing.layer_calls import (
    draw_call,
    matches_reference,
    matches_reference_in_use,
    own_kinds,
    rows_agree,
    shows_one_option,
)
from attentest.testing.sizes_in_use import LONG, MANY, WIDE, at_sizes_in_use
from attentest.testing.stacks import (
    compose_layers,
    layer_adds_its_parameters,
    layers_own_parameters,
)


@check(
    "encoder.formula",
    examples=5,
    in_use=at_sizes_in_use(partial(matches_reference_in_use, STACK), WIDE, MANY, LONG),
)
def test_formula(subject: Subject, draw: Draw) -> None:
    kinds = own_kinds(subject, ("padding", "per-sample", "none", "per-head"))
    for length, heads in ((draw.length(), draw.heads()), (draw.long(37), draw.several())):
        size, both = scale(subject, draw), (length, 1)
        matches_reference(
            draw_call(subject, draw, STACK, kinds=kinds, scale=size, lengths=both, heads=heads)
        )


@check("encoder.final-norm", examples=2)
def test_final_norm(subject: Subject, draw: Draw) -> None:
    case = draw_call(subject, draw, STACK)
    width = case.probe.sizes.d_model
    shows_one_option(
        case,
        case.output(),
        "final_norm",
        {"norm.gain": np.ones(width), "norm.bias": np.zeros(width)},
    )


@check("encoder.layers-own-parameters", examples=2)
def test_layers_own_parameters(subject: Subject, draw: Draw) -> None:
    layers_own_parameters(draw, draw_call(subject, draw, STACK, layers=draw.layers(2)))


@check("encoder.layers-in-sequence", examples=2)
def test_layers_in_sequence(subject: Subject, draw: Draw) -> None:
    for layers in (draw.layers(2), draw.deepest()):
        case = draw_call(subject, draw, STACK, kinds=("padding", "none"), layers=layers, shortest=2)
        rows_agree(
            case,
            case.output(),
            compose_layers(case),
            what="output beside that of the layers in turn",
        )


@check("encoder.stack-of-one-is-a-layer", examples=2)
def test_stack_of_one_is_a_layer(subject: Subject, draw: Draw) -> None:
    case = draw_call(subject, draw, STACK, kinds=("padding", "none"), layers=1)
    rows_agree(
        case, case.output(), compose_layers(case), what="output beside that of the layer alone"
    )


@check("encoder.depth-counts", examples=2)
def test_depth_counts(subject: Subject, draw: Draw) -> None:
    layer_adds_its_parameters(subject, draw, STACK)


@check("encoder.float32", examples=2)
def test_float32(subject: Subject, draw: Draw) -> None:
    _precise(subject, draw, STACK, "float32")


@check("encoder.half-precision", examples=2)
def test_half_precision(subject: Subject, draw: Draw) -> None:
    for precision in half_precisions(subject):
        _precise(subject, draw, LAYER, precision)


def _precise(subject: Subject, draw: Draw, component: str, precision: str) -> None:
    subject.require_precision(precision)
    kinds = ("padding", "none")
    case = draw_call(subject, draw, component, kinds=kinds, precision=precision)

    def make(asked: str) -> Call:
        return case.probe, case.inputs

    matches_in_precision(make, precision, rows=case.rows)
