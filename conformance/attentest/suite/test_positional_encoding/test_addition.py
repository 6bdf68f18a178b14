"""Checks of the chapter `positional_encoding`: the same rows for any input."""

import numpy as np

from attentest.harness.errors import Absent
from attentest.harness.subject import Subject
from attentest.harness.tolerances import as_floats
from attentest.judging.check import check
from attentest.suite.test_positional_encoding.cases import draw_call, same_rows, separates_positions
from attentest.testing.assertions import equal, holds, same_shape
from attentest.testing.common import HALF_PRECISIONS, same_precision
from attentest.testing.draw import Draw
from attentest.testing.gradients import gradient_to
from attentest_spec.setting import Array

FAR = 10.0
"""An input that is further from 0 than any row of a table of sines."""

SAMPLES = 40
"""The number of equal samples of which training drops different numbers."""

SPREAD = 1e-3
"""The largest difference of the multiples of sums; positions that are not dropped give 0.1."""


@check("positional_encoding.prefix")
def test_prefix(subject: Subject, draw: Draw) -> None:
    # Two positions have one prefix, whose only row is the first.
    case = draw_call(subject, draw, lengths=(min(3, subject.limits.length or 3), 9))
    whole = case.added()
    separates_positions(case, whole)
    for length in sorted({1, draw.integer(1, case.x.shape[1] - 1), case.x.shape[1] - 1}):
        start = case.added(case.x[:, :length])
        same_rows(case, start, whole[:, :length], case.size()[:length])


@check("positional_encoding.added")
def test_added(subject: Subject, draw: Draw) -> None:
    case = draw_call(subject, draw)
    before = case.added()
    separates_positions(case, before)
    other = draw.floats(*case.x.shape, scale=draw.choose((1.0, 30.0, 1e-3, 1e3)))
    other[-1, -1] = 0.0
    same_rows(
        case, case.added(other), before, case.size(other) + case.size(), what="encoding of another"
    )


@check("positional_encoding.indexed-by-position")
def test_indexed_by_position(subject: Subject, draw: Draw) -> None:
    case = draw_call(subject, draw, batch=draw.choose((3, 2)))
    together = case.added()
    separates_positions(case, together)
    size = 2 * case.size()
    first = np.broadcast_to(together[:1], together.shape)
    same_rows(case, together, first, size, what="encoding of all samples")
    for number in range(len(case.x)):
        alone = case.added(case.x[number : number + 1])
        same_rows(case, alone, together[:1], size, what=f"encoding of sample {number} alone")


@check("positional_encoding.shapes")
def test_shapes(subject: Subject, draw: Draw) -> None:
    known = [one for one in ("float32", "float64") if one in subject.limits.precisions]
    for precision in dict.fromkeys([subject.precision, *known]):
        _shaped(subject, draw, precision)


def _shaped(subject: Subject, draw: Draw, precision: str) -> None:
    case = draw_call(subject, draw, lengths=(1, 4), precision=precision)
    for x in (case.x, case.x[:1], case.x[:, :1], case.x[:1, :1]):
        output = case.probe.output(x)
        same_shape(output, x.shape)
        same_precision(case.probe, output)
    separates_positions(case, case.added())


@check("positional_encoding.gradient-is-identity")
def test_gradient_is_identity(subject: Subject, draw: Draw) -> None:
    case = draw_call(subject, draw)
    cotangent = draw.floats(*case.x.shape)
    gradient = case.probe.vjp((case.x,), cotangent)
    same_shape(gradient.output, case.x.shape)
    separates_positions(case, as_floats(gradient.output) - case.x)
    equal(gradient_to(gradient, 0, "input", case.x.shape), cotangent, what="gradient of the input")


@check("positional_encoding.dropout-on-sum", examples=1)
def test_dropout_on_sum(subject: Subject, draw: Draw) -> None:
    if not subject.limits.dropout:
        raise Absent(f"{subject.name} has no dropout")
    case = draw_call(subject, draw, batch=SAMPLES, dropout=0.5)
    if "mode" not in case.probe.part.capabilities or case.probe.precision in HALF_PRECISIONS:
        raise Absent("there is no training mode, or its numbers are too coarse")
    separates_positions(case, case.added())
    x = np.full_like(case.x, FAR)
    sums = as_floats(case.probe.output(x))
    case.probe.train()
    trained = as_floats(case.probe.output(x))
    case.probe.eval()
    kept = (trained != 0) & (sums != 0)
    ratios = trained[kept] / sums[kept]
    if not ratios.size or (ratios == 1).all():
        raise Absent(f"{subject.name} drops nothing that a call shows")
    holds(
        float(np.ptp(ratios)) <= SPREAD,
        f"In training, the numbers that are not dropped are between {ratios.min():.4g} and "
        f"{ratios.max():.4g} times the sums of the input and the positions, and not one multiple "
        f"of them: dropout does not act on the sum.",
        actual=trained,
    )


@check("positional_encoding.input-untouched")
def test_input_untouched(subject: Subject, draw: Draw) -> None:
    case = draw_call(subject, draw)
    first: Array = case.added()  # the probe compares the input with a copy after every call
    separates_positions(case, first)
    given = case.probe.output(case.x)
    kept = given.copy()
    case.added(case.x + 1.0)
    equal(given, kept, what="output of a call, looked at after another,")
    equal(case.added(), first, what="encoding added by another call")
