"""Faults in the numbers of the table."""

# ruff: noqa: F811
# mypy: disable-error-code="no-redef"

import torch
from torch import Tensor
from torch.nn import functional

from attentest.faults.fault import fault
from attentest.specimens import Seams

Device = torch.device | None


@fault(
    "positional_encoding.exponent-doubled",
    clause="positional_encoding.formula",
    origin="systems.md B",
    wrong="The exponent is 4i/d: columns are stepped through by two, and doubled once more.",
    effect="Half of the frequencies are wasted, and no checkpoint of the paper's table fits.",
)
def exponents(self: Seams, d_model: int, device: Device) -> Tensor:
    return self.sound.exponents(d_model, device) * 2


@fault(
    "positional_encoding.exponent-halved",
    clause="positional_encoding.formula",
    wrong="The exponent is i/d, the number of the pair without its factor of two.",
    effect="The slowest wave is a hundred times too fast.",
)
def exponents(self: Seams, d_model: int, device: Device) -> Tensor:
    return self.sound.exponents(d_model, device) / 2


@fault(
    "positional_encoding.exponent-to-the-end",
    clause="positional_encoding.formula",
    wrong="The exponents reach 1 at the last pair, divided by d - 2 in place of d.",
    effect="Close to the paper's table in wide models, and another one.",
)
def exponents(self: Seams, d_model: int, device: Device) -> Tensor:
    return self.sound.exponents(d_model, device) * d_model / max(d_model - 2, 1)


@fault(
    "positional_encoding.exponent-of-a-fixed-width",
    clause="positional_encoding.formula",
    origin="systems.md C",
    wrong="The exponents are those of a width of four, whatever the model's width is.",
    effect="The columns beyond the fourth hardly move.",
)
def exponents(self: Seams, d_model: int, device: Device) -> Tensor:
    return self.sound.exponents(d_model, device) * d_model / 4


@fault(
    "positional_encoding.exponent-in-whole-numbers",
    clause="positional_encoding.formula",
    wrong="2i is divided by d in whole numbers.",
    effect="Every pair of columns has the same frequency.",
)
def exponents(self: Seams, d_model: int, device: Device) -> Tensor:
    return self.sound.exponents(d_model, device).floor()


@fault(
    "positional_encoding.base-thousand",
    clause="positional_encoding.formula",
    origin="B039",
    wrong="The base is 1000.",
    effect="Slow waves are too fast, and long sentences repeat themselves.",
)
def frequencies(self: Seams, d_model: int, device: Device) -> Tensor:
    return self.sound.frequencies(d_model, device) ** 0.75


@fault(
    "positional_encoding.precedence",
    clause="positional_encoding.formula",
    origin="B039",
    wrong="-log(10000) / d // 2 floors to -1 before it is multiplied.",
    effect="All columns but the first few are constant.",
)
def frequencies(self: Seams, d_model: int, device: Device) -> Tensor:
    return torch.exp(-self.sound.exponents(d_model, device) * d_model)


@fault(
    "positional_encoding.base-and-exponent-swapped",
    clause="positional_encoding.formula",
    origin="B039",
    wrong="The exponent is raised to the power of 1/10000.",
    effect="The first pair stands still, and all others turn at one speed.",
)
def frequencies(self: Seams, d_model: int, device: Device) -> Tensor:
    return self.sound.exponents(d_model, device) ** 1e-4


@fault(
    "positional_encoding.halves-for-interleaved",
    clause="positional_encoding.formula",
    wrong="Sines fill the first half of the columns and cosines the second.",
    effect="The columns stand in another order, and no checkpoint fits.",
)
def arrange(self: Seams, sines: Tensor, cosines: Tensor, d_model: int) -> Tensor:
    return torch.cat((sines, cosines[:, : d_model // 2]), dim=-1)


@fault(
    "positional_encoding.logarithm-rounded",
    clause="positional_encoding.far-positions",
    wrong="The logarithm of 10000 is written with two decimals.",
    effect="Frequencies are slightly off, which shows far from the beginning.",
)
def frequencies(self: Seams, d_model: int, device: Device) -> Tensor:
    return torch.exp(self.sound.exponents(d_model, device) * -9.21)


@fault(
    "positional_encoding.positions-in-bytes",
    clause="positional_encoding.far-positions",
    wrong="Positions are counted in bytes.",
    effect="The 256th position is the first again.",
)
def positions(self: Seams, length: int, device: Device) -> Tensor:
    return self.sound.positions(length, device) % 256


@fault(
    "positional_encoding.frequencies-in-single",
    clause="positional_encoding.far-positions",
    wrong="Frequencies are rounded to float32 before positions multiply them.",
    effect="In float64 far positions are wrong from the fourth digit on.",
)
def frequencies(self: Seams, d_model: int, device: Device) -> Tensor:
    return self.sound.frequencies(d_model, device).float().double()


@fault(
    "positional_encoding.positions-from-one",
    clause="positional_encoding.first-row",
    wrong="Positions are counted from 1.",
    effect="Every row is the next one's, and no checkpoint fits.",
)
def positions(self: Seams, length: int, device: Device) -> Tensor:
    return self.sound.positions(length, device) + 1


@fault(
    "positional_encoding.sines-and-cosines-swapped",
    clause="positional_encoding.first-row",
    wrong="Cosines stand where the sines belong.",
    effect="Trained alone it works as well; no checkpoint fits.",
)
def arrange(self: Seams, sines: Tensor, cosines: Tensor, d_model: int) -> Tensor:
    return self.sound.arrange(cosines, sines, d_model)


@fault(
    "positional_encoding.first-row-zero",
    clause="positional_encoding.first-row",
    wrong="The first row is set to zero, as if it were a padding's.",
    effect="The first word of every sentence is told no position.",
)
def position_table(self: Seams, length: int, d_model: int, device: Device = None) -> Tensor:
    table = self.sound.position_table(length, d_model, device)
    table[0] = 0.0
    return table


@fault(
    "positional_encoding.position-itself",
    clause="positional_encoding.bounded",
    wrong="The number of the position is added to its waves.",
    effect="Late positions drown the words.",
)
def position_table(self: Seams, length: int, d_model: int, device: Device = None) -> Tensor:
    table = self.sound.position_table(length, d_model, device)
    return table + self.sound.positions(length, device)[:, None] / 10


@fault(
    "positional_encoding.exponent-by-column",
    clause="positional_encoding.pairs-on-circle",
    origin="B037",
    wrong="The exponent is taken from the column and not from its pair.",
    effect="Frequencies fall twice as fast, and a sine and its cosine have two of them.",
)
def position_table(self: Seams, length: int, d_model: int, device: Device = None) -> Tensor:
    exponents = torch.arange(d_model, dtype=torch.float64, device=device) * 2 / d_model
    angles = self.sound.positions(length, device)[:, None] / 10000.0**exponents
    cosines = angles[:, 1::2].cos()
    return self.sound.arrange(
        angles[:, 0::2].sin(), functional.pad(cosines, (0, d_model % 2)), d_model
    )


@fault(
    "positional_encoding.cosines-missing",
    clause="positional_encoding.pairs-on-circle",
    wrong="Both columns of a pair hold the sine.",
    effect="A position and its mirror image cannot be told apart by a slow wave.",
)
def arrange(self: Seams, sines: Tensor, cosines: Tensor, d_model: int) -> Tensor:
    return self.sound.arrange(sines, sines, d_model)


@fault(
    "positional_encoding.angles-slow-down",
    clause="positional_encoding.shift-is-rotation",
    wrong="Angles grow with the root of the position.",
    effect="The same distance is another angle at another place.",
)
def positions(self: Seams, length: int, device: Device) -> Tensor:
    return self.sound.positions(length, device).sqrt()


@fault(
    "positional_encoding.positions-in-triangle",
    clause="positional_encoding.shift-is-rotation",
    wrong="Positions are summed up twice: 0, 1, 3, 6 and so on.",
    effect="The same distance is another angle at another place.",
)
def positions(self: Seams, length: int, device: Device) -> Tensor:
    return self.sound.positions(length, device).cumsum(0)


@fault(
    "positional_encoding.positions-in-pairs",
    clause="positional_encoding.rows-differ",
    wrong="Two neighbours share a position.",
    effect="The order within a pair of words is lost.",
)
def positions(self: Seams, length: int, device: Device) -> Tensor:
    return (self.sound.positions(length, device) / 2).floor()
