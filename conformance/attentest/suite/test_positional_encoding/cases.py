"""Calls of a positional encoding, and assertions of its chapter about them."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from attentest.harness.errors import Absent
from attentest.harness.subject import Probe, Subject
from attentest.harness.tolerances import angle_epsilon, as_floats, largest
from attentest.testing.assertions import finite, holds, near, same_shape
from attentest.testing.draw import Draw
from attentest_spec import Choices, Sizes
from attentest_spec.choices import Value
from attentest_spec.parameters import first_position
from attentest_spec.precision import epsilon
from attentest_spec.setting import Floats

WAVES = ("interleaved", "halves", "halves-inclusive", "doubled-exponent")
"""The options that consist of sines and cosines."""


@dataclass(frozen=True)
class EncodingCall:
    """One call: the part and an input (B, S, D)."""

    probe: Probe
    x: Floats

    @property
    def option(self) -> str:
        """The declared option."""
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

    def size(self, x: Floats | None = None, choices: Choices | None = None) -> Floats:
        """Return the magnitude (S,) of what is rounded, in units of the precision of the part.

        Each rounding of a frequency or of its product with the position is relative: the angle is
        wrong by a few units of its arithmetic times the position, and a sine by no more than its
        angle. The first row is exact in every arithmetic. See :func:`angle_epsilon`.
        """
        given = self.x if x is None else x
        declared = choices or self.probe.subject.choices
        precision = self.probe.precision
        coarse = angle_epsilon(precision, declared) / epsilon(precision)
        place = first_position(declared) + np.arange(given.shape[1], dtype=np.float64)
        return 1.0 + largest(given) + coarse * place


def draw_call(
    subject: Subject,
    draw: Draw,
    *,
    lengths: tuple[int, int] = (2, 7),
    waves: bool = False,
    widths: Sequence[int] = (6, 4, 5, 12),
    precision: str = "",
    most: int = 0,
    dropout: float = 0.0,
    **fixed: int,
) -> EncodingCall:
    """Draw a call; `waves` demands sines and cosines, `most` is the largest length of the part."""
    if waves and subject.choices.positional_encoding not in WAVES:
        raise Absent(f"positional_encoding is declared as {subject.choices.positional_encoding}")
    length = draw.length(*lengths)
    even = [width for width in widths if subject.limits.odd_width or width % 2 == 0]
    width = draw.choose(even)
    longest = most or subject.limits.length or 40
    sizes = Sizes(d_model=width, heads=1, max_length=longest, dropout=dropout)
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
    difference = np.abs(actual - wanted).max(axis=-1) / size
    worst = int(np.argmax(np.where(np.isnan(difference), np.inf, difference)) % len(size))
    near(
        case.probe.subject,
        actual[..., worst, :],
        wanted[..., worst, :],
        size=float(size[worst]),
        precision=case.probe.precision,
        what=f"{what} at position {worst}",
    )


def matches_table(case: EncodingCall, added: Floats, *, x: Floats | None = None) -> None:
    """Demand that the encoding `added` to every sample is the declared table."""
    table = case.table()
    same_shape(added, (*added.shape[:-2], *table.shape))
    same_rows(case, added, np.broadcast_to(table, added.shape), case.size(x))


def separates_positions(case: EncodingCall, added: Floats) -> None:
    """Demand that the encoding separates the last two positions, as far as the declared one does.

    Half of the declared difference is enough. A single position has to be given half of its row.
    """
    table = case.table()
    found, declared = (
        largest(rows[..., -1, :] - (rows[..., -2, :] if len(table) > 1 else 0.0))
        for rows in (added, table)
    )
    finite(added, what="encoding added")
    holds(
        found >= declared / 2,
        f"The encoding separates the last of {len(table)} positions by {found:.3g}, the declared "
        f"one by {declared:.3g}.",
        actual=added,
    )
