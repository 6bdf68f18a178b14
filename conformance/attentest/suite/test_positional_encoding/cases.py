"""Calls of a positional encoding, and what the checks of its chapter demand of them."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from attentest.harness.errors import Absent
from attentest.harness.subject import Probe, Subject
from attentest.harness.tolerances import as_floats, largest
from attentest.testing.assertions import finite, holds, near, same_shape
from attentest.testing.draw import Draw
from attentest_spec import Sizes
from attentest_spec.choices import Value
from attentest_spec.parameters import first_position
from attentest_spec.precision import epsilon
from attentest_spec.setting import Floats

WAVES = ("interleaved", "halves", "halves-inclusive", "doubled-exponent")
"""The options that are made of sines and cosines."""


@dataclass(frozen=True)
class EncodingCall:
    """One call: the part and an input (B, S, D)."""

    probe: Probe
    x: Floats

    @property
    def option(self) -> str:
        """What is declared to be added."""
        return self.probe.subject.choices.positional_encoding

    def added(self, x: Floats | None = None) -> Floats:
        """Return what the backend adds to the input, or to another one."""
        given = self.x if x is None else x
        output = self.probe.output(given)
        same_shape(output, given.shape)
        rows: Floats = as_floats(output) - given
        return rows

    def table(self, **changes: Value) -> Floats:
        """Return the rows (S, D) that are declared to be added, or those under other choices."""
        choices = self.probe.subject.choices.but(**changes)
        rows: Floats = self.probe.expected(np.zeros_like(self.x[:1]), choices=choices).output[0]
        return rows

    def pairs(self, added: Floats) -> tuple[Floats, Floats]:
        """Return the sines and the cosines (.., S, pairs) in what is added."""
        width = added.shape[-1]
        if self.option.startswith("halves"):
            pairs = width // 2
            first = pairs if self.option == "halves-inclusive" else width - pairs
            return added[..., :pairs], added[..., first : first + pairs]
        return added[..., 0 : width - width % 2 : 2], added[..., 1::2]

    def size(self, x: Floats | None = None) -> Floats:
        """Return the magnitude (S,) of what is rounded: angles grow with the position.

        A table for half precision is made in single precision at least. One that is declared to be
        rounded to single precision may be rounded up here and down there.
        """
        given = self.x if x is None else x
        choices = self.probe.subject.choices
        unit, single = epsilon(self.probe.precision), epsilon("float32")
        arithmetic = min(unit, single) / unit
        rounded = single / unit if choices.position_arithmetic == "float32" else 1.0
        place = first_position(choices) + np.arange(given.shape[1], dtype=np.float64)
        return max(1.0, rounded) + largest(given) + arithmetic * place


def draw_call(
    subject: Subject,
    draw: Draw,
    *,
    lengths: tuple[int, int] = (2, 7),
    waves: bool = False,
    widths: Sequence[int] = (6, 4, 5, 12),
    precision: str = "",
    most: int = 0,
    **fixed: int,
) -> EncodingCall:
    """Draw a call; `waves` asks for sines and cosines, `most` is the longest that is built for."""
    if waves and subject.choices.positional_encoding not in WAVES:
        raise Absent(f"what is added is declared as {subject.choices.positional_encoding}")
    length = draw.length(*lengths)
    even = [width for width in widths if subject.limits.odd_width or width % 2 == 0]
    width = draw.choose(even)
    sizes = Sizes(d_model=width, heads=1, max_length=most or subject.limits.length or 40)
    parameters = draw.parameters("positional_encoding", sizes, precision=precision)
    probe = subject.part(
        "positional_encoding", sizes, parameters=parameters or None, precision=precision
    )
    batch = fixed.get("batch") or draw.batch()
    return EncodingCall(probe, draw.floats(batch, length, width, precision=precision))


def same_rows(
    case: EncodingCall,
    actual: Floats,
    wanted: Floats,
    size: Floats,
    *,
    what: str = "encoding added",
) -> None:
    """Demand equal rows (.., S, D), each up to the rounding of its `size`."""
    same_shape(actual, wanted.shape, what=what)
    apart = np.abs(actual - wanted).max(axis=-1) / size
    worst = int(np.argmax(np.where(np.isnan(apart), np.inf, apart)) % len(size))
    near(
        case.probe.subject,
        actual[..., worst, :],
        wanted[..., worst, :],
        size=float(size[worst]),
        precision=case.probe.precision,
        what=f"{what} at position {worst}",
    )


def matches_table(case: EncodingCall, added: Floats, *, x: Floats | None = None) -> None:
    """Demand that what is `added` to every sample is the declared table."""
    table = case.table()
    same_shape(added, (*added.shape[:-2], *table.shape))
    same_rows(case, added, np.broadcast_to(table, added.shape), case.size(x))


def separates_positions(case: EncodingCall, added: Floats) -> None:
    """Demand that what is added tells the last position from the one before, if it is declared to.

    A position alone has to be given half of what is declared.
    """
    table = case.table()
    found, declared = (
        largest(rows[..., -1, :] - (rows[..., -2, :] if len(table) > 1 else 0.0))
        for rows in (added, table)
    )
    finite(added, what="encoding added")
    holds(
        found >= declared / 2,
        f"The last of {len(table)} positions is told apart by {found:.3g}; its row is declared to "
        f"do so by {declared:.3g}.",
        actual=added,
    )
