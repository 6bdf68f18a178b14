"""Faults in the declared choices of a table: first row, precision, scale."""

import torch
from torch import Tensor

from attentest.faults.fault import fault
from attentest.faults.reference_models import Device, Hooks, Node

FROM_TWO = {"position_offset": 2.0}
SINGLE = {"position_arithmetic": "float32"}


@fault("positional_encoding.offset-forgotten", "offset", seam="positions", choices=FROM_TWO)
def offset_forgotten(self: Hooks, length: int, device: Device) -> Tensor:
    """Positions are counted from 0 where the first used row is the third.

    Every row is the one two places before.
    """
    return torch.arange(length, dtype=torch.float64, device=device)


@fault("positional_encoding.offset-undeclared", "offset", seam="positions")
def offset_undeclared(self: Hooks, length: int, device: Device) -> Tensor:
    """Two rows are kept for padding, and positions begin behind them.

    Every row is the one two places later.
    """
    return self.correct.positions(length, device) + 2


@fault("positional_encoding.offset-twice", "offset", seam="positions", choices=FROM_TWO)
def offset_twice(self: Hooks, length: int, device: Device) -> Tensor:
    """The offset is added by the caller and by the table. Every row is the one two places later."""
    return self.correct.positions(length, device) + self.first_position()


@fault(
    "positional_encoding.learned-offset-forgotten",
    "offset",
    seam="position_rows",
    choices={**FROM_TWO, "positional_encoding": "learned"},
)
def learned_offset_forgotten(self: Hooks, module: Node, length: int, device: Device) -> Tensor:
    """A learned table has the rows for padding, and is read from its first row on.

    The first tokens are given rows that were never trained.
    """
    self.correct.position_rows(module, length, device)
    return next(module.parameters())[:length]


@fault("positional_encoding.table-in-single", "arithmetic", seam="round_table")
def table_in_single(self: Hooks, table: Tensor) -> Tensor:
    """The table is filled in single precision and then moved to double.

    A model of double precision is off by 3e-8, and no comparison at 1e-9 holds.
    """
    return table.float().double()


@fault("positional_encoding.single-undone", "arithmetic", seam="round_table", choices=SINGLE)
def single_undone(self: Hooks, table: Tensor) -> Tensor:
    """The table has all digits where single precision is declared.

    The declaration is wrong: a comparison by it is off by 3e-8.
    """
    return table


@fault("positional_encoding.half-for-single", "arithmetic", seam="round_table", choices=SINGLE)
def half_for_single(self: Hooks, table: Tensor) -> Tensor:
    """The table is rounded to half where single precision is declared. Slow waves have steps."""
    return table.half().double()


@fault(
    "positional_encoding.halves-inclusive-for-halves",
    "formula",
    seam="exponents",
    choices={"positional_encoding": "halves"},
)
def halves_inclusive_for_halves(self: Hooks, d_model: int, device: Device) -> Tensor:
    """Exponents run from 0 to 1, end included. Only the first frequency is as declared."""
    pairs = torch.arange((d_model + 1) // 2, dtype=torch.float64, device=device)
    return pairs / max(len(pairs) - 1, 1)


@fault(
    "positional_encoding.halves-for-halves-inclusive",
    "formula",
    seam="exponents",
    choices={"positional_encoding": "halves-inclusive"},
)
def halves_for_halves_inclusive(self: Hooks, d_model: int, device: Device) -> Tensor:
    """Exponents are 2i/d, not up to 1 as declared. Only the first frequency is as declared."""
    pairs = torch.arange(d_model // 2, dtype=torch.float64, device=device)
    return pairs * 2 / d_model


@fault(
    "positional_encoding.learned-scale-missing",
    "formula",
    seam="scale_rows",
    choices={"positional_encoding": "learned-scaled"},
)
def learned_scale_missing(self: Hooks, rows: Tensor) -> Tensor:
    """The learned rows are added without their factor. Positions dominate the tokens."""
    return rows
