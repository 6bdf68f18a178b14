"""Checks of the chapter `decoder`: layers on top of each other."""

from functools import partial

import numpy as np

from attentest.harness.subject import Subject
from attentest.judging.check import check
from attentest.suite.test_decoder.cases import LAYER, STACK, TARGET
from attentest.testing.common import Call, half_precisions, matches_in_precision
from attentest.testing.draw import Draw
from attentest.testing.layer_calls import (
    draw_call,
    matches_reference,
    matches_reference_in_use,
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
    "decoder.formula",
    examples=5,
    in_use=at_sizes_in_use(partial(matches_reference_in_use, STACK), WIDE, MANY, LONG),
)
def test_formula(subject: Subject, draw: Draw) -> None:
    long = draw.long(37)
    kinds = ("target", "causal", "none")
    for size, heads in ((lengths(draw), draw.heads()), ((long, long), draw.several())):
        matches_reference(draw_call(subject, draw, STACK, kinds=kinds, lengths=size, heads=heads))


def lengths(draw: Draw) -> tuple[int, int]:
    """Draw the lengths of target and memory, mostly different ones."""
    return draw.choose((draw.lengths(), (draw.length(2), draw.length(2))))


@check("decoder.layers-own-parameters", examples=2)
def test_layers_own_parameters(subject: Subject, draw: Draw) -> None:
    layers_own_parameters(
        draw, draw_call(subject, draw, STACK, kinds=TARGET, layers=draw.layers(2))
    )


@check("decoder.layers-in-sequence", examples=2)
def test_layers_in_sequence(subject: Subject, draw: Draw) -> None:
    for layers in (draw.layers(2), draw.deepest()):
        case = draw_call(subject, draw, STACK, kinds=TARGET, layers=layers, shortest=2)
        rows_agree(
            case,
            case.output(),
            compose_layers(case),
            what="output beside that of the layers in turn",
        )


@check("decoder.final-norm", examples=2)
def test_final_norm(subject: Subject, draw: Draw) -> None:
    case = draw_call(subject, draw, STACK, kinds=TARGET)
    width = case.probe.sizes.d_model
    norm = {"norm.gain": np.ones(width), "norm.bias": np.zeros(width)}
    shows_one_option(case, case.output(), "final_norm", norm)


@check("decoder.depth-counts", examples=2)
def test_depth_counts(subject: Subject, draw: Draw) -> None:
    layer_adds_its_parameters(subject, draw, STACK)


@check("decoder.float32", examples=2)
def test_float32(subject: Subject, draw: Draw) -> None:
    _precise(subject, draw, STACK, "float32")


@check("decoder.half-precision", examples=2)
def test_half_precision(subject: Subject, draw: Draw) -> None:
    for precision in half_precisions(subject):
        _precise(subject, draw, LAYER, precision)


def _precise(subject: Subject, draw: Draw, component: str, precision: str) -> None:
    subject.require_precision(precision)
    case = draw_call(subject, draw, component, kinds=TARGET, precision=precision)

    def make(asked: str) -> Call:
        return case.probe, case.inputs

    matches_in_precision(make, precision, rows=case.rows)
