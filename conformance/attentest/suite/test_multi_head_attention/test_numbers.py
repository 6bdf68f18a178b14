"""Checks of the chapter `multi_head_attention`: the numbers, in every precision."""

from collections.abc import Mapping

from attentest.harness.copies import cast
from attentest.harness.errors import Absent
from attentest.harness.subject import Subject
from attentest.judging.check import check
from attentest.suite.test_multi_head_attention.cases import (
    COMPONENT,
    build_loaded,
    draw_call,
    draw_sizes,
    matches_reference,
)
from attentest.testing.assertions import finite
from attentest.testing.common import Call, half_precisions, matches_in_precision
from attentest.testing.draw import Draw
from attentest.testing.sizes_in_use import LONG, MANY, WIDER, SizesInUse, at_sizes_in_use
from attentest_spec.setting import Floats


def _formula_in_use(subject: Subject, draw: Draw, size: SizesInUse) -> None:
    probe = build_loaded(subject, draw, size.sizes(subject))
    matches_reference(draw_call(draw, probe, lengths=(size.length, size.length), batch=size.batch))


@check(
    "multi_head_attention.formula",
    examples=10,
    in_use=at_sizes_in_use(_formula_in_use, WIDER, MANY, LONG),
)
def test_formula(subject: Subject, draw: Draw) -> None:
    for sizes in (draw_sizes(draw), draw_sizes(draw, draw.most_heads())):
        probe = build_loaded(subject, draw, sizes)
        lengths = draw.length(), draw.at_least(3)  # the score of a single key does not count
        matches_reference(draw_call(draw, probe, scale=draw.scale() ** 0.5, lengths=lengths))


@check("multi_head_attention.one-head-is-attention")
def test_one_head_is_attention(subject: Subject, draw: Draw) -> None:
    probe = build_loaded(subject, draw, draw_sizes(draw, heads=1))
    matches_reference(draw_call(draw, probe, lengths=(draw.length(), draw.length(2))))


@check("multi_head_attention.large-scores", examples=8)
def test_large_scores(subject: Subject, draw: Draw) -> None:
    if subject.precision not in ("float64", "float32"):
        raise Absent("half precision does not resolve scores of this size")
    sizes = draw_sizes(draw)
    parameters = {
        name: values * (200.0 if name.startswith(("query", "key")) else 1.0)
        for name, values in draw.parameters(COMPONENT, sizes).items()
    }
    probe = subject.part(COMPONENT, sizes, parameters=_cast(parameters, subject.precision))
    case = draw_call(draw, probe, hiding=True)
    output = case.output()
    finite(output)
    matches_reference(case, output)


def _cast(parameters: Mapping[str, Floats], precision: str) -> dict[str, Floats]:
    return {name: cast(values, precision) for name, values in parameters.items()}


@check("multi_head_attention.float32")
def test_float32(subject: Subject, draw: Draw) -> None:
    matches_in_precision(lambda precision: _in(subject, draw, precision), "float32")


@check("multi_head_attention.half-precision", examples=7)
def test_half_precision(subject: Subject, draw: Draw) -> None:
    for precision in half_precisions(subject):
        matches_in_precision(lambda one: _in(subject, draw, one), precision)


def _in(subject: Subject, draw: Draw, precision: str) -> Call:
    case = draw_call(draw, build_loaded(subject, draw, draw_sizes(draw), precision=precision))
    return case.probe, case.inputs
