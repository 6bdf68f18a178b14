"""Faults in lengths and widths."""

import torch
from torch import Tensor

from attentest.faults.fault import fault
from attentest.faults.reference_models import Device, Hooks, Node


@fault(
    "positional_encoding.one-row-short",
    "every-length-served",
    seam="hold_table",
    kind="loud",
    models=("plain",),
)
def one_row_short(self: Hooks, module: Node, table: Tensor) -> None:
    """The table has one row too few. The longest sequence fails, hours into training."""
    self.correct.hold_table(module, table[:-1])


@fault(
    "positional_encoding.learned-table-one-row-short",
    "every-length-served",
    seam="check_length",
    choices={"positional_encoding": "learned"},
    kind="loud",
)
def learned_table_one_row_short(self: Hooks, length: int, rows: int) -> None:
    """A length equal to the table's is refused. The longest sequence fails."""
    self.correct.check_length(length, rows - 1)


@fault(
    "positional_encoding.one-position-divides-by-zero", "every-length-served", seam="position_rows"
)
def one_position_divides_by_zero(self: Hooks, module: Node, length: int, device: Device) -> Tensor:
    """Positions are divided by length - 1. A sequence of one token becomes NaN."""
    rows = self.correct.position_rows(module, length, device)
    return rows / (length - 1) * (length - 1)


@fault("positional_encoding.last-row-repeated", "every-length-served", seam="position_rows")
def last_row_repeated(self: Hooks, module: Node, length: int, device: Device) -> Tensor:
    """The last position gets the row before it. The longest sequence loses order at its end."""
    rows = self.correct.position_rows(module, length, device)
    place = torch.arange(length, device=device)
    return rows[place.clamp(max=max(self.sizes.max_length - 2, 0))]


@fault("positional_encoding.wraps-around", "too-long", seam="position_rows")
def wraps_around(self: Hooks, module: Node, length: int, device: Device) -> Tensor:
    """Positions beyond the table start again at its first row. Long inputs are silently wrong."""
    most = self.sizes.max_length
    rows = self.correct.position_rows(module, min(length, most), device)
    return rows[torch.arange(length, device=device) % most]


@fault("positional_encoding.stays-at-last", "too-long", seam="position_rows", origin="B049")
def stays_at_last(self: Hooks, module: Node, length: int, device: Device) -> Tensor:
    """Positions beyond the table get its last row. The end of long inputs has no order."""
    most = self.sizes.max_length
    rows = self.correct.position_rows(module, min(length, most), device)
    return rows[torch.arange(length, device=device).clamp(max=most - 1)]


@fault("positional_encoding.cut-off", "too-long", seam="add_positions", origin="B049")
def cut_off(self: Hooks, module: Node, x: Tensor) -> Tensor:
    """Input beyond the table is cut off. Long inputs come out shorter."""
    return self.correct.add_positions(module, x[:, : self.sizes.max_length])


@fault(
    "positional_encoding.too-long-unexplained",
    "too-long-named",
    seam="check_length",
    origin="B049",
    kind="wording",
    choices={"positional_encoding": "learned"},
    models=("plain",),
)
def too_long_unexplained(self: Hooks, length: int, rows: int) -> None:
    """Nothing compares the length with the table. A long input fails inside of a sum."""
    return


@fault(
    "positional_encoding.odd-width-one-cosine-too-many",
    "odd-width-named",
    seam="arrange",
    origin="B040",
    kind="wording",
)
def odd_width_one_cosine_too_many(
    self: Hooks, sines: Tensor, cosines: Tensor, d_model: int
) -> Tensor:
    """An odd width has one cosine too many. Building fails with an error about shapes."""
    table = sines.new_zeros(len(sines), d_model)
    table[:, 0::2] = sines
    table[:, 1::2] = cosines
    return table


@fault(
    "positional_encoding.odd-width-asserted",
    "odd-width-named",
    seam="arrange",
    kind="wording",
)
def odd_width_asserted(self: Hooks, sines: Tensor, cosines: Tensor, d_model: int) -> Tensor:
    """A bare assertion checks that the width is even. The user has to find out which size it is."""
    assert d_model % 2 == 0
    return self.correct.arrange(sines, cosines, d_model)


@fault(
    "positional_encoding.odd-width-last-column-empty", "odd-width", seam="arrange", origin="B040"
)
def odd_width_last_column_empty(
    self: Hooks, sines: Tensor, cosines: Tensor, d_model: int
) -> Tensor:
    """At an odd width the last column is zero. One column has no position."""
    table = self.correct.arrange(sines, cosines, d_model)
    table[:, d_model - d_model % 2 :] = 0.0
    return table


@fault("positional_encoding.odd-width-rounded-up", "odd-width", seam="exponents")
def odd_width_rounded_up(self: Hooks, d_model: int, device: Device) -> Tensor:
    """An odd width uses the exponents of the next even one. The table differs."""
    return self.correct.exponents(d_model, device) * d_model / (d_model + d_model % 2)
