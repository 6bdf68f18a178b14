"""Faults in the pairs of columns, in their direction, and in the part that is turned."""

from collections.abc import Mapping

import torch
from torch import Tensor

from attentest.faults.fault import fault
from attentest.faults.reference_models import Hooks, Pair
from attentest_spec.choices import Value

HALVES: Mapping[str, Value] = {"rotary_pairs": "halves"}
PART: Mapping[str, Value] = {"rotary_width": 0.5}
CONTIGUOUS: Mapping[str, Value] = {**PART, "rotary_partial": "contiguous"}


def _reordered(self: Hooks, x: Tensor, waves: Pair, order: list[int]) -> Tensor:
    """Return x turned as if its columns were in another order, and put back."""
    place = torch.tensor(order, device=x.device)
    return self.correct.turn(x[..., place], *waves)[..., place.argsort()]


@fault("rotary.halves-for-adjacent", "formula", seam="turn", origin="M064")
def halves_for_adjacent(self: Hooks, x: Tensor, cosines: Tensor, sines: Tensor) -> Tensor:
    """The columns i and i + r/2 are a pair, for weights of adjacent pairs. No checkpoint fits."""
    width = x.shape[-1]
    order = [column for pair in range(width // 2) for column in (pair, pair + width // 2)]
    return _reordered(self, x, (cosines, sines), order)


@fault("rotary.adjacent-for-halves", "formula", seam="turn", origin="M064", choices=HALVES)
def adjacent_for_halves(self: Hooks, x: Tensor, cosines: Tensor, sines: Tensor) -> Tensor:
    """Adjacent columns are a pair, for weights whose pairs are in halves. No checkpoint fits."""
    width = x.shape[-1]
    return _reordered(self, x, (cosines, sines), [*range(0, width, 2), *range(1, width, 2)])


@fault("rotary.table-of-the-other-pairs", "distance-alone", seam="turn", origin="M064")
def table_of_the_other_pairs(self: Hooks, x: Tensor, cosines: Tensor, sines: Tensor) -> Tensor:
    """A table for adjacent pairs is applied with a rotation in halves.

    Scores depend on more than the distance. It trains.
    """
    wide = [self.spread_turns(one.repeat_interleave(2, dim=-1)) for one in (cosines, sines)]
    first, second = x.chunk(2, dim=-1)
    return x * wide[0] + torch.cat((-second, first), dim=-1) * wide[1]


@fault(
    "rotary.adjacent-columns-with-halved-table",
    "distance-alone",
    seam="turn",
    origin="M064",
    choices=HALVES,
)
def adjacent_columns_with_halved_table(
    self: Hooks, x: Tensor, cosines: Tensor, sines: Tensor
) -> Tensor:
    """A table for halves is applied with a rotation of adjacent columns.

    Scores depend on more than the distance. It trains.
    """
    wide = [self.spread_turns(torch.cat((one, one), dim=-1)) for one in (cosines, sines)]
    turned = torch.stack((-x[..., 1::2], x[..., 0::2]), dim=-1).flatten(-2)
    return x * wide[0] + turned * wide[1]


@fault("rotary.exponent-by-pair", "formula", seam="turn_exponents", origin="B037")
def exponent_by_pair(self: Hooks, columns: int, turned: int) -> Tensor:
    """The exponent is i/r and not 2i/r. Every frequency but the first is too high."""
    return self.correct.turn_exponents(columns, turned) / 2


@fault("rotary.minus-missing", "norm-kept", seam="turn_pairs")
def minus_missing(self: Hooks, a: Tensor, b: Tensor, cosines: Tensor, sines: Tensor) -> Pair:
    """The minus of the sine is missing. Some vectors are stretched, others vanish."""
    return a * cosines + b * sines, b * cosines + a * sines


@fault("rotary.second-column-without-sine", "norm-kept", seam="turn_pairs")
def second_column_without_sine(
    self: Hooks, a: Tensor, b: Tensor, cosines: Tensor, sines: Tensor
) -> Pair:
    """The second column of a pair lacks the sine of the first. Norms change with the position."""
    return a * cosines - b * sines, b * cosines


@fault("rotary.first-column-turned-first", "norm-kept", seam="turn_pairs")
def first_column_turned_first(
    self: Hooks, a: Tensor, b: Tensor, cosines: Tensor, sines: Tensor
) -> Pair:
    """The first column is overwritten before the second one reads it. Norms change."""
    first = a * cosines - b * sines
    return first, b * cosines + first * sines


@fault("rotary.turned-backward", "direction", seam="turn_pairs")
def turned_backward(self: Hooks, a: Tensor, b: Tensor, cosines: Tensor, sines: Tensor) -> Pair:
    """The sign of the sine is exchanged. It trains as well, and fits no checkpoint."""
    return self.correct.turn_pairs(a, b, cosines, -sines)


@fault("rotary.columns-of-a-pair-swapped", "direction", seam="split_pairs")
def columns_of_a_pair_swapped(self: Hooks, x: Tensor) -> Pair:
    """The two columns of a pair are exchanged. Queries and keys fit no checkpoint."""
    a, b = self.correct.split_pairs(x)
    return b, a


@fault("rotary.whole-head-turned", "width", seam="turned_columns", origin="M079", choices=PART)
def whole_head_turned(self: Hooks, width: int) -> int:
    """The part of the columns is dropped on one branch. The whole head is turned, silently."""
    return width


@fault("rotary.half-of-the-part", "width", seam="turned_columns", origin="M086", choices=PART)
def half_of_the_part(self: Hooks, width: int) -> int:
    """The number of pairs is taken for that of columns. Half of the part is turned."""
    return self.correct.turned_columns(width) // 4 * 2


@fault("rotary.tail-lost", "width", seam="join_turned", choices=PART)
def tail_lost(self: Hooks, x: Tensor, a: Tensor, b: Tensor) -> Tensor:
    """Columns that are not turned become zero. Half of every query is lost."""
    return self.correct.join_turned(torch.zeros_like(x), a, b)


@fault("rotary.last-columns-turned", "width", seam="turn", choices=PART)
def last_columns_turned(self: Hooks, x: Tensor, cosines: Tensor, sines: Tensor) -> Tensor:
    """The last columns are turned and the first ones pass. No checkpoint fits."""
    return self.correct.turn(x.flip(-1), cosines, sines).flip(-1)


@fault(
    "rotary.part-split-at-half-the-head",
    "partial",
    seam="turn",
    origin="M076",
    choices={**CONTIGUOUS, **HALVES},
)
def part_split_at_half_the_head(self: Hooks, x: Tensor, cosines: Tensor, sines: Tensor) -> Tensor:
    """A part is turned in the pairs of the whole head. Its tables are right, byte for byte."""
    width, pairs = x.shape[-1], cosines.shape[-1]
    first = [*range(pairs), *range(width // 2, width // 2 + pairs)]
    rest = [column for column in range(width) if column not in first]
    return _reordered(self, x, (cosines, sines), [*first, *rest])


@fault(
    "rotary.frequencies-of-the-whole-head",
    "partial",
    seam="paired_columns",
    origin="M080",
    choices=CONTIGUOUS,
)
def frequencies_of_the_whole_head(self: Hooks, width: int) -> int:
    """A part is turned at the frequencies of the whole head. Its slow pairs are too fast."""
    return width


@fault(
    "rotary.proportional-as-contiguous",
    "partial",
    seam="paired_columns",
    origin="M077",
    choices={**PART, **HALVES, "rotary_partial": "proportional"},
)
def proportional_as_contiguous(self: Hooks, width: int) -> int:
    """A proportional part is turned as if the head were narrow. Other columns are paired."""
    return self.turned_columns(width)


@fault(
    "rotary.positions-over-frequencies",
    "formula",
    seam="turn_angles",
    origin="xlite-dev/LeetCUDA#289",
)
def positions_over_frequencies(self: Hooks, places: Tensor, frequencies: Tensor) -> Tensor:
    """Positions are divided by the frequency. Position 0 is right, and slow pairs turn fastest."""
    return self.correct.turn_angles(places, 1.0 / frequencies)
