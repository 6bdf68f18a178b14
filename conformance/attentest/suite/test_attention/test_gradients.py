"""Checks of the chapter `attention`: gradients."""

from attentest.harness.subject import Subject
from attentest.harness.tolerances import as_floats, largest
from attentest.judging.check import check
from attentest.suite.test_attention.cases import AttentionCall, depends_on_values, draw_call
from attentest.testing.assertions import finite, holds
from attentest.testing.common import HALF_PRECISIONS
from attentest.testing.draw import Draw
from attentest.testing.gradients import agrees_with_differences


@check("attention.gradient")
def test_gradient(subject: Subject, draw: Draw) -> None:
    for lengths in (None, (draw.length(), draw.long(37))):
        case = draw_call(subject, draw, scale=1.0, lengths=lengths)
        depends_on_values(case, case.output())
        agrees_with_differences(case.probe, *case.inputs, draw=draw)


@check("attention.gradient-to-masked-keys")
def test_gradient_to_masked_keys(subject: Subject, draw: Draw) -> None:
    case = draw_call(subject, draw, hiding=True, kinds=("padding",), scale=1.0)
    shape = (*case.query.shape[:-1], case.value.shape[-1])
    gradient = case.probe.vjp(case.inputs, draw.floats(*shape))
    depends_on_values(case, case.output())
    hidden = ~case.keep.any(axis=-2)
    for name, number in (("key", 1), ("value", 2)):
        pulled = gradient.inputs[number]
        holds(pulled is not None, f"No gradient reaches the {name}.")
        rows = as_floats(pulled)[hidden]
        holds(not rows.any(), f"A masked {name} has a gradient of {largest(rows):.6g}.")


@check("attention.gradient-finite")
def test_gradient_finite(subject: Subject, draw: Draw) -> None:
    # In half precision the scores of large inputs leave the range of the format itself.
    scales = (1.0,) if subject.precision in HALF_PRECISIONS else (1.0, 1e3)
    for scale in scales:
        _finite(draw, draw_call(subject, draw, scale=scale))
        if set(subject.limits.masks) - {"none"}:
            _finite(draw, draw_call(subject, draw, scale=scale, hiding=True, lengths=(3, 4)))


def _finite(draw: Draw, case: AttentionCall) -> None:
    shape = (*case.query.shape[:-1], case.value.shape[-1])
    gradient = case.probe.vjp(case.inputs, draw.floats(*shape))
    for name, pulled in zip(("query", "key", "value"), gradient.inputs, strict=False):
        finite(as_floats(pulled), what=f"gradient of the {name}")
    holds(bool(as_floats(gradient.inputs[2]).any()), "No gradient reaches the values.")
