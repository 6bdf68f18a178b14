"""Checks of the chapter `multi_head_attention`: the numbers, in every precision."""

from collections.abc import Mapping

from attentest.harness.copies import cast
from attentest.harness.errors import Absent
from attentest.harness.subject import Subject
from attentest.judging.check import check
from attentest.suite.test_multi_head_attention.cases import COMPONENT, call, judged, loaded, sized
from attentest.testing.assertions import finite
from attentest.testing.common import Call, half, precise
from attentest.testing.draw import Draw
from attentest_spec.setting import Floats


@check("multi_head_attention.formula", examples=15)
def test_formula(subject: Subject, draw: Draw) -> None:
    for sizes in (sized(draw), sized(draw, draw.most_heads())):
        probe = loaded(subject, draw, sizes)
        judged(call(draw, probe, scale=draw.scale() ** 0.5))


@check("multi_head_attention.one-head-is-attention")
def test_one_head_is_attention(subject: Subject, draw: Draw) -> None:
    probe = loaded(subject, draw, sized(draw, heads=1))
    judged(call(draw, probe, lengths=(draw.length(), draw.length(2))))


@check("multi_head_attention.large-scores")
def test_large_scores(subject: Subject, draw: Draw) -> None:
    if subject.precision not in ("float64", "float32"):
        raise Absent("half precision does not resolve scores of this size")
    sizes = sized(draw)
    parameters = {
        name: values * (200.0 if name.startswith(("query", "key")) else 1.0)
        for name, values in draw.parameters(COMPONENT, sizes).items()
    }
    probe = subject.part(COMPONENT, sizes, parameters=_cast(parameters, subject.precision))
    case = call(draw, probe, hiding=True)
    output = case.output()
    finite(output)
    judged(case, output)


def _cast(parameters: Mapping[str, Floats], precision: str) -> dict[str, Floats]:
    return {name: cast(values, precision) for name, values in parameters.items()}


@check("multi_head_attention.float32")
def test_float32(subject: Subject, draw: Draw) -> None:
    precise(lambda precision: _in(subject, draw, precision), "float32")


@check("multi_head_attention.half-precision", examples=15)
def test_half_precision(subject: Subject, draw: Draw) -> None:
    precise(lambda precision: _in(subject, draw, precision), half(subject, draw))


def _in(subject: Subject, draw: Draw, precision: str) -> Call:
    case = call(draw, loaded(subject, draw, sized(draw), precision=precision))
    return case.probe, case.inputs
