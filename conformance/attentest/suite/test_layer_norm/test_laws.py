"""Checks of the chapter `layer_norm`: shifts, scales and other positions."""

import numpy as np

from attentest.harness.copies import cast
from attentest.harness.subject import Subject
from attentest.harness.tolerances import as_floats, largest
from attentest.judging.check import check
from attentest.suite.test_layer_norm.cases import draw_call
from attentest.testing.common import HALF_PRECISIONS
from attentest.testing.draw import Draw
from attentest.testing.invariants import agree_up_to_rounding
from attentest.testing.norm_calls import NormCall, is_narrow


@check("layer_norm.per-position")
def test_per_position(subject: Subject, draw: Draw) -> None:
    batch, few = draw.choose((2, 3)), draw.length(min(2, subject.limits.length or 2))
    length = draw.choose((few, draw.long()))
    case = draw_call(subject, draw, shape=(batch, length))
    together = case.checked_output()
    sample, place = draw.integer(0, batch - 1), draw.integer(0, length - 1)
    alone = np.zeros((batch, length), dtype=bool)
    alone[sample, place] = True
    others = draw.floats(*case.x.shape, scale=30.0 * largest(case.x))
    changed = np.where(alone[..., None], case.x, others)
    after = case.probe.output(changed)
    agree_up_to_rounding(
        case.probe,
        case.x,
        actual=after,
        expected=together,
        rows=alone,
        what="output at a position after changing all others",
    )


@check("layer_norm.shift-law")
def test_shift_law(subject: Subject, draw: Draw) -> None:
    case = draw_call(subject, draw, scale=1.0, widths=(4, 12))
    size = 4.0 if subject.precision in HALF_PRECISIONS else draw.choose((100.0, 1.0, 1000.0))
    shift = draw.choose((1.0, -1.0)) * size
    # Digits that the shift pushes out of the format are missing on both sides.
    moved = cast(case.x + shift, subject.precision)
    agree_up_to_rounding(
        case.probe,
        moved,
        actual=case.probe.output(moved),
        expected=NormCall(case.probe, moved - shift, case.loaded).checked_output(),
        what=f"output after adding {shift:g} to every column",
    )


@check("layer_norm.scale-law")
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
    expected = bias + np.sign(factor) * (before - bias) * sizes[1] / sizes[0]
    agree_up_to_rounding(
        case.probe,
        case.x,
        actual=case.probe.output(case.x * factor),
        expected=expected,
        what=f"output after multiplying every column by {factor:g}",
    )
