"""Checks of the chapter `positional_encoding`: the numbers, near and far, in every precision."""

from dataclasses import replace

import numpy as np

from attentest.harness.errors import Absent
from attentest.harness.subject import Subject
from attentest.harness.tolerances import as_floats, rounding
from attentest.judging.check import check
from attentest.suite.test_positional_encoding.cases import EncodingCall, draw_call, matches_table
from attentest.testing.assertions import holds
from attentest.testing.common import half_precisions, same_precision
from attentest.testing.draw import Draw
from attentest.testing.sizes_in_use import LONG, MANY, WIDE, SizesInUse, at_sizes_in_use
from attentest_spec import CHOICES
from attentest_spec.choices import Value
from attentest_spec.parameters import first_position, learned_positions
from attentest_spec.precision import epsilon
from attentest_spec.setting import Floats


def share(case: EncodingCall, added: Floats, **changes: Value) -> float:
    """Return the difference from the table under other choices, as a share of the tolerance."""
    choices = case.probe.subject.choices.but(**changes)
    difference = np.abs(added - case.table(**changes)).max(axis=-1) / case.size(choices=choices)
    return float(difference.max() / rounding(case.probe.precision, 1))


def _formula_in_use(subject: Subject, draw: Draw, size: SizesInUse) -> None:
    lengths, widths = (size.length, size.length), (size.width,)
    case = draw_call(
        subject, draw, lengths=lengths, widths=widths, most=size.length, batch=size.batch
    )
    matches_table(case, case.added())


@check(
    "positional_encoding.formula",
    in_use=at_sizes_in_use(_formula_in_use, replace(WIDE, length=600), MANY, LONG),
)
def test_formula(subject: Subject, draw: Draw) -> None:
    case = draw_call(subject, draw, lengths=(2, 12) if (subject.limits.length or 2) > 1 else (1, 1))
    added = case.added()
    matches_table(case, added)
    wide = draw_call(
        subject, draw, lengths=(min(2, subject.limits.length or 2), 3), widths=(66, 130)
    )
    matches_table(wide, wide.added())
    for option in CHOICES["positional_encoding"].options:
        choices = subject.choices.but(positional_encoding=option.name)
        if option.name == case.option or (learned_positions(choices) and not case.probe.parameters):
            continue
        if share(case, case.table(), positional_encoding=option.name) > 2:
            holds(
                share(case, added, positional_encoding=option.name) > 1,
                f"{case.option} is declared, and the numbers are those of {option.name}.",
            )


@check("positional_encoding.offset")
def test_offset(subject: Subject, draw: Draw) -> None:
    if subject.choices.positional_encoding == "none":
        raise Absent("no positions are declared, and no row is the first")
    case = draw_call(subject, draw, lengths=(1, 4))
    added = case.added()
    for first in OFFSETS:
        choices = subject.choices.but(position_offset=first)
        if choices != subject.choices and _reaches(case, first_position(choices)):
            holds(
                share(case, added, position_offset=first) > 1,
                f"position_offset is declared as {subject.choices.position_offset}; the numbers "
                f"show {first}.",
            )
    matches_table(case, added)


OFFSETS: tuple[Value, ...] = ("none", 1.0, 2.0, 3.0)
"""First positions in use, and one that is not."""


def _reaches(case: EncodingCall, first: int) -> bool:
    """Say whether a learned table has all rows from `first` on; a formula has."""
    rows = case.probe.parameters.get("weight")
    return rows is None or first + case.x.shape[1] <= len(rows)


@check("positional_encoding.arithmetic")
def test_arithmetic(subject: Subject, draw: Draw) -> None:
    if epsilon(subject.precision) >= epsilon("float32"):
        raise Absent(f"{subject.precision} has no more digits than float32")
    if subject.limits.length == 1:
        raise Absent("a single position is encoded by 0 and 1, which are exact in every precision")
    case = draw_call(subject, draw, lengths=(2, 12), waves=True)
    case = EncodingCall(case.probe, np.zeros_like(case.x))
    added = case.added()
    fitting = [one for one in ARITHMETICS if share(case, added, position_arithmetic=one) <= 1]
    declared = subject.declared.get("position_arithmetic", ARITHMETICS[0])
    if fitting:  # an exact table lies within the tolerance of a rounded one, and not vice versa
        holds(
            fitting[0] == declared,
            f"position_arithmetic is {_declared(subject)}; the numbers show {fitting[0]}.",
            actual=added,
        )
    matches_table(case, added)


ARITHMETICS = tuple(option.name for option in CHOICES["position_arithmetic"].options)
"""The arithmetics of a table, the finest first."""


def _declared(subject: Subject) -> str:
    """Return in words what is declared about the arithmetic of the table."""
    declared = subject.declared.get("position_arithmetic")
    return f"declared as {declared}" if declared else f"not declared, which means {ARITHMETICS[0]}"


@check("positional_encoding.far-positions", examples=2)
def test_far_positions(subject: Subject, draw: Draw) -> None:
    wanted = draw.choose((20_000, 1200, 5000))  # the longest first, which every seed begins with
    length = min(wanted, subject.limits.length or wanted)
    case = draw_call(subject, draw, lengths=(length, length), waves=True, most=length, batch=1)
    zeros = np.zeros_like(case.x)
    matches_table(case, case.added(zeros), x=zeros)


@check("positional_encoding.half-precision", examples=2)
def test_half_precision(subject: Subject, draw: Draw) -> None:
    for precision in half_precisions(subject):
        _in_half_precision(subject, draw, precision)


def _in_half_precision(subject: Subject, draw: Draw, precision: str) -> None:
    wanted = draw.choose((2500, 600))
    length = min(wanted, subject.limits.length or wanted)
    case = draw_call(
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
    matches_table(case, as_floats(output), x=zeros)
