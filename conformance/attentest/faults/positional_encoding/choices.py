"""Faults in what is declared of a table: its first row, its digits, its scale."""

# ruff: noqa: F811
# mypy: disable-error-code="no-redef"

import torch
from torch import Tensor

from attentest.faults.fault import fault
from attentest.specimens import Node, Seams

Device = torch.device | None
FROM_TWO = {"position_offset": 2.0}
SINGLE = {"position_arithmetic": "float32"}


@fault(
    "positional_encoding.offset-forgotten",
    clause="positional_encoding.offset",
    wrong="Positions are counted from 0 where the first row that is used is the third.",
    effect="Every position is told as the one two places before, and no checkpoint fits.",
    choices=FROM_TWO,
)
def positions(self: Seams, length: int, device: Device) -> Tensor:
    return torch.arange(length, dtype=torch.float64, device=device)


@fault(
    "positional_encoding.offset-undeclared",
    clause="positional_encoding.offset",
    wrong="Two rows are kept for padding, and positions begin behind them.",
    effect="Every row is the one two places later, and no checkpoint fits.",
)
def positions(self: Seams, length: int, device: Device) -> Tensor:
    return self.sound.positions(length, device) + 2


@fault(
    "positional_encoding.offset-twice",
    clause="positional_encoding.offset",
    wrong="The offset is added by the caller and by the table.",
    effect="Every row is the one two places later, and no checkpoint fits.",
    choices=FROM_TWO,
)
def positions(self: Seams, length: int, device: Device) -> Tensor:
    return self.sound.positions(length, device) + self.first_position()


@fault(
    "positional_encoding.learned-offset-forgotten",
    clause="positional_encoding.offset",
    wrong="A learned table has the rows for padding, and is read from its first row on.",
    effect="The first words are given rows that were never trained.",
    choices={**FROM_TWO, "positional_encoding": "learned"},
)
def position_rows(self: Seams, module: Node, length: int, device: Device) -> Tensor:
    self.sound.position_rows(module, length, device)
    return next(module.parameters())[:length]


@fault(
    "positional_encoding.table-in-single",
    clause="positional_encoding.arithmetic",
    wrong="The table is filled in single precision and then moved to double.",
    effect="A model of double precision is off by 3e-8, and no comparison at 1e-9 holds.",
)
def round_table(self: Seams, table: Tensor) -> Tensor:
    return table.float().double()


@fault(
    "positional_encoding.single-undone",
    clause="positional_encoding.arithmetic",
    wrong="The table has all digits where single precision is declared.",
    effect="The declaration is wrong: a comparison by it is off by 3e-8.",
    choices=SINGLE,
)
def round_table(self: Seams, table: Tensor) -> Tensor:
    return table


@fault(
    "positional_encoding.half-for-single",
    clause="positional_encoding.arithmetic",
    wrong="The table is rounded to half precision where single precision is declared.",
    effect="Slow waves have steps in them.",
    choices=SINGLE,
)
def round_table(self: Seams, table: Tensor) -> Tensor:
    return table.half().double()


@fault(
    "positional_encoding.halves-inclusive-for-halves",
    clause="positional_encoding.formula",
    wrong="The exponents are spread from 0 to 1, the end included.",
    effect="No frequency but the first is the declared one.",
    choices={"positional_encoding": "halves"},
)
def exponents(self: Seams, d_model: int, device: Device) -> Tensor:
    pairs = torch.arange((d_model + 1) // 2, dtype=torch.float64, device=device)
    return pairs / max(len(pairs) - 1, 1)


@fault(
    "positional_encoding.halves-for-halves-inclusive",
    clause="positional_encoding.formula",
    wrong="The exponents are 2i/d where they are declared to end in 1.",
    effect="No frequency but the first is the declared one.",
    choices={"positional_encoding": "halves-inclusive"},
)
def exponents(self: Seams, d_model: int, device: Device) -> Tensor:
    pairs = torch.arange(d_model // 2, dtype=torch.float64, device=device)
    return pairs * 2 / d_model


@fault(
    "positional_encoding.learned-scale-missing",
    clause="positional_encoding.formula",
    wrong="The rows of the learned table are added without their factor.",
    effect="Positions drown the words, the more so the wider the model.",
    choices={"positional_encoding": "learned-scaled"},
)
def scale_rows(self: Seams, rows: Tensor) -> Tensor:
    return rows
