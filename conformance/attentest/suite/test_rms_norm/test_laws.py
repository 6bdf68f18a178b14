"""Checks of the chapter `rms_norm`: means, scales and other positions."""

import numpy as np

from attentest.harness.subject import Subject
from attentest.harness.tolerances import as_floats, largest
from attentest.judging.check import check
from attentest.suite.test_rms_norm.cases import draw_call
from attentest.testing.assertions import holds
from attentest.testing.draw import Draw
from attentest.testing.invariants import agree_up_to_rounding
from attentest.testing.norm_calls import NormCall, is_narrow


@check("rms_norm.per-position")
def test_per_position(subject: Subject, draw: Draw) -> None:
    batch, few = draw.choose((2, 3)), draw.length(min(2, subject.limits.length or 2))
    length = draw.choose((few, draw.long()))
    case = draw_call(subject, draw, shape=(batch, length))
    together = case.checked_output()
    sample, place = draw.integer(0, batch - 1), draw.integer(0, length - 1)
    alone = np.zeros((batch, length), dtype=bool)
    alone[sample, place] = True
    others = draw.floats(*case.x.shape, scale=30.0 * largest(case.x))
    agree_up_to_rounding(
        case.probe,
        case.x,
        actual=case.probe.output(np.where(alone[..., None], case.x, others)),
        expected=together,
        rows=alone,
        what="output at a position after changing all others",
    )


@check("rms_norm.mean-kept")
def test_mean_kept(subject: Subject, draw: Draw) -> None:
    case = draw_call(subject, draw, scale=1.0)
    level = draw.choose((3.0, -2.0, 64.0, -0.5))
    actual = NormCall(case.probe, np.full_like(case.x, level), case.loaded).checked_output()
    holds(bool(as_floats(actual).any()), f"Rows of {level:g} came out as 0.")


@check("rms_norm.scale-law")
def test_scale_law(subject: Subject, draw: Draw) -> None:
    case = draw_call(subject, draw, scale=draw.choose((1.0, 30.0)))
    before = as_floats(case.checked_output())
    large = 4.0 if is_narrow(subject.precision) else 64.0
    factor = draw.choose((large, 0.125, -1.0, -large, -0.125))
    bias = case.probe.parameters.get("bias", 0.0)
    sizes = [
        np.linalg.norm(case.probe.expected(x).output - bias, axis=-1, keepdims=True)
        for x in (case.x, case.x * factor)
    ]
    agree_up_to_rounding(
        case.probe,
        case.x,
        actual=case.probe.output(case.x * factor),
        expected=bias + np.sign(factor) * (before - bias) * sizes[1] / sizes[0],
        what=f"output after multiplying every column by {factor:g}",
    )
