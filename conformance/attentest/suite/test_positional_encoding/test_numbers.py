"""Checks of the chapter `positional_encoding`: the numbers, near and far, in every precision."""

import numpy as np

from attentest.cases import half, same_precision
from attentest.checks import check
from attentest.compare import as_floats, holds, rounding
from attentest.draw import Draw
from attentest.subject import Subject
from attentest.suite.test_positional_encoding.cases import Case, drawn, follows
from attentest_spec import CHOICES
from attentest_spec.setting import Floats


def share(case: Case, added: Floats, table: Floats) -> float:
    """Return the largest difference, as a share of what rounding allows."""
    apart = np.abs(added - table).max(axis=-1) / case.size()
    return float(apart.max() / rounding(case.probe.precision, 1))


@check("positional_encoding.formula")
def test_formula(subject: Subject, draw: Draw) -> None:
    case = drawn(subject, draw, lengths=(2, 12) if (subject.limits.length or 2) > 1 else (1, 1))
    added = case.added()
    follows(case, added)
    wide = drawn(subject, draw, lengths=(1, 3), widths=(66, 130))
    follows(wide, wide.added())
    for option in CHOICES["positional_encoding"].options:
        if option.name in (case.option, "learned"):
            continue
        table = case.table(option.name)
        if share(case, case.table(), table) > 2:
            holds(
                share(case, added, table) > 1,
                f"{case.option} is declared, and the numbers are those of {option.name}.",
            )


@check("positional_encoding.far-positions", examples=3)
def test_far_positions(subject: Subject, draw: Draw) -> None:
    wanted = draw.choose((5000, 1200))
    length = min(wanted, subject.limits.length or wanted)
    case = drawn(subject, draw, lengths=(length, length), waves=True, most=length, batch=1)
    zeros = np.zeros_like(case.x)
    follows(case, case.added(zeros), x=zeros)


@check("positional_encoding.half-precision", examples=4)
def test_half_precision(subject: Subject, draw: Draw) -> None:
    precision = half(subject, draw)
    wanted = draw.choose((2500, 600))
    length = min(wanted, subject.limits.length or wanted)
    case = drawn(
        subject,
        draw,
        lengths=(length, length),
        waves=True,
        most=length,
        batch=1,
        precision=precision,
    )
    zeros = np.zeros_like(case.x)
    output = case.probe.output(zeros)
    same_precision(case.probe, output)
    follows(case, as_floats(output), x=zeros)
