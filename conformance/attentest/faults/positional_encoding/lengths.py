"""Faults in lengths and widths."""

# ruff: noqa: F811
# mypy: disable-error-code="no-redef"

import torch
from torch import Tensor

from attentest.faults.fault import fault
from attentest.specimens import Node, Seams

Device = torch.device | None


@fault(
    "positional_encoding.one-row-short",
    clause="positional_encoding.every-length-served",
    wrong="The table has one row less than the longest sentence.",
    effect="The longest sentence fails, after hours of training.",
    specimens=("plain",),
    kind="loud",
)
def hold_table(self: Seams, module: Node, table: Tensor) -> None:
    self.sound.hold_table(module, table[:-1])


@fault(
    "positional_encoding.learned-table-one-row-short",
    clause="positional_encoding.every-length-served",
    wrong="A length as large as the learned table is refused.",
    effect="The longest sentence fails, after hours of training.",
    choices={"positional_encoding": "learned"},
    kind="loud",
)
def check_length(self: Seams, length: int, rows: int) -> None:
    self.sound.check_length(length, rows - 1)


@fault(
    "positional_encoding.one-position-divides-by-zero",
    clause="positional_encoding.every-length-served",
    wrong="Positions are spread over length - 1 steps.",
    effect="A sentence of one word becomes NaN.",
)
def position_rows(self: Seams, module: Node, length: int, device: Device) -> Tensor:
    rows = self.sound.position_rows(module, length, device)
    return rows / (length - 1) * (length - 1)


@fault(
    "positional_encoding.last-row-repeated",
    clause="positional_encoding.every-length-served",
    wrong="The last position of the table is given the row before it.",
    effect="The end of the longest sentence has its order lost.",
)
def position_rows(self: Seams, module: Node, length: int, device: Device) -> Tensor:
    rows = self.sound.position_rows(module, length, device)
    place = torch.arange(length, device=device)
    return rows[place.clamp(max=max(self.sizes.max_length - 2, 0))]


@fault(
    "positional_encoding.wraps-around",
    clause="positional_encoding.too-long",
    wrong="Positions beyond the table begin again at its first row.",
    effect="Long inputs are silently wrong.",
)
def position_rows(self: Seams, module: Node, length: int, device: Device) -> Tensor:
    most = self.sizes.max_length
    rows = self.sound.position_rows(module, min(length, most), device)
    return rows[torch.arange(length, device=device) % most]


@fault(
    "positional_encoding.stays-at-last",
    clause="positional_encoding.too-long",
    origin="B049",
    wrong="Positions beyond the table are given its last row.",
    effect="The end of a long input has its order lost.",
)
def position_rows(self: Seams, module: Node, length: int, device: Device) -> Tensor:
    most = self.sizes.max_length
    rows = self.sound.position_rows(module, min(length, most), device)
    return rows[torch.arange(length, device=device).clamp(max=most - 1)]


@fault(
    "positional_encoding.cut-off",
    clause="positional_encoding.too-long",
    origin="B049",
    wrong="What lies beyond the table is cut off the input.",
    effect="Long inputs come out shorter.",
)
def add_positions(self: Seams, module: Node, x: Tensor) -> Tensor:
    return self.sound.add_positions(module, x[:, : self.sizes.max_length])


@fault(
    "positional_encoding.too-long-unexplained",
    clause="positional_encoding.too-long",
    origin="B049",
    wrong="Nothing compares the length with the table.",
    effect="A long input fails inside of a sum, or a table of one row serves all positions.",
    choices={"positional_encoding": "learned"},
)
def check_length(self: Seams, length: int, rows: int) -> None:
    return None


@fault(
    "positional_encoding.odd-width-one-cosine-too-many",
    clause="positional_encoding.odd-width",
    origin="B040",
    wrong="At an odd width there is a cosine more than columns for it.",
    effect="Building fails with an error about shapes.",
)
def arrange(self: Seams, sines: Tensor, cosines: Tensor, d_model: int) -> Tensor:
    table = sines.new_zeros(len(sines), d_model)
    table[:, 0::2] = sines
    table[:, 1::2] = cosines
    return table


@fault(
    "positional_encoding.odd-width-last-column-empty",
    clause="positional_encoding.odd-width",
    origin="B040",
    wrong="At an odd width the last column is left at zero.",
    effect="One column tells no position.",
)
def arrange(self: Seams, sines: Tensor, cosines: Tensor, d_model: int) -> Tensor:
    table = self.sound.arrange(sines, cosines, d_model)
    table[:, d_model - d_model % 2 :] = 0.0
    return table


@fault(
    "positional_encoding.odd-width-rounded-up",
    clause="positional_encoding.odd-width",
    wrong="At an odd width the exponents are those of the even width above.",
    effect="The table is another one at odd widths.",
)
def exponents(self: Seams, d_model: int, device: Device) -> Tensor:
    return self.sound.exponents(d_model, device) * d_model / (d_model + d_model % 2)
