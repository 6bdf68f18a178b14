"""Faults in the numbers of the table."""

import torch
from torch import Tensor
from torch.nn import functional

from attentest.faults.fault import fault
from attentest.faults.reference_models import Device, Hooks


@fault("positional_encoding.exponent-doubled", "formula", seam="exponents", origin="systems.md B")
def exponent_doubled(self: Hooks, d_model: int, device: Device) -> Tensor:
    """The exponent is 4i/d, not 2i/d. Half of the frequencies are wasted."""
    return self.correct.exponents(d_model, device) * 2


@fault("positional_encoding.exponent-halved", "formula", seam="exponents")
def exponent_halved(self: Hooks, d_model: int, device: Device) -> Tensor:
    """The exponent is i/d, not 2i/d. The slowest wave is a hundred times too fast."""
    return self.correct.exponents(d_model, device) / 2


@fault("positional_encoding.exponent-to-the-end", "formula", seam="exponents")
def exponent_to_the_end(self: Hooks, d_model: int, device: Device) -> Tensor:
    """The exponents are divided by d - 2, not d, and reach 1.

    Wide models come close to the paper's table.
    """
    return self.correct.exponents(d_model, device) * d_model / max(d_model - 2, 1)


@fault(
    "positional_encoding.exponent-of-a-fixed-width",
    "formula",
    seam="exponents",
    origin="systems.md C",
)
def exponent_of_a_fixed_width(self: Hooks, d_model: int, device: Device) -> Tensor:
    """The exponents are those of width four. Columns beyond the fourth hardly change."""
    return self.correct.exponents(d_model, device) * d_model / 4


@fault("positional_encoding.exponent-in-whole-numbers", "formula", seam="exponents")
def exponent_in_whole_numbers(self: Hooks, d_model: int, device: Device) -> Tensor:
    """2i / d is an integer division. Every pair of columns has the same frequency."""
    return self.correct.exponents(d_model, device).floor()


@fault("positional_encoding.base-thousand", "formula", seam="frequencies", origin="B039")
def base_thousand(self: Hooks, d_model: int, device: Device) -> Tensor:
    """The base is 1000. Slow waves are too fast, and long sequences repeat themselves."""
    return self.correct.frequencies(d_model, device) ** 0.75


@fault("positional_encoding.precedence", "formula", seam="frequencies", origin="B039")
def precedence(self: Hooks, d_model: int, device: Device) -> Tensor:
    """-log(10000) / d // 2 is floored to -1 first. Most columns are constant."""
    return torch.exp(-self.correct.exponents(d_model, device) * d_model)


@fault(
    "positional_encoding.base-and-exponent-swapped", "formula", seam="frequencies", origin="B039"
)
def base_and_exponent_swapped(self: Hooks, d_model: int, device: Device) -> Tensor:
    """The exponent is raised to the power of 1/10000. All pairs but one have one frequency."""
    return self.correct.exponents(d_model, device) ** 1e-4


@fault("positional_encoding.halves-for-interleaved", "formula", seam="arrange")
def halves_for_interleaved(self: Hooks, sines: Tensor, cosines: Tensor, d_model: int) -> Tensor:
    """Sines fill the first half of the columns, cosines the second. No checkpoint fits."""
    return torch.cat((sines, cosines[:, : d_model // 2]), dim=-1)


@fault("positional_encoding.logarithm-rounded", "far-positions", seam="frequencies")
def logarithm_rounded(self: Hooks, d_model: int, device: Device) -> Tensor:
    """log(10000) is rounded to two decimals. Far positions are wrong."""
    return torch.exp(self.correct.exponents(d_model, device) * -9.21)


@fault("positional_encoding.positions-in-bytes", "far-positions", seam="positions")
def positions_in_bytes(self: Hooks, length: int, device: Device) -> Tensor:
    """Positions are counted in bytes. Position 256 is position 0 again."""
    return self.correct.positions(length, device) % 256


@fault("positional_encoding.frequencies-in-single", "arithmetic", seam="frequencies")
def frequencies_in_single(self: Hooks, d_model: int, device: Device) -> Tensor:
    """Frequencies are rounded to float32 before positions multiply them.

    In float64 far positions are wrong from the fourth digit on.
    """
    return self.correct.frequencies(d_model, device).float().double()


@fault("positional_encoding.positions-from-one", "first-row", seam="positions")
def positions_from_one(self: Hooks, length: int, device: Device) -> Tensor:
    """Positions are counted from 1. Every row is the next one's, and no checkpoint fits."""
    return self.correct.positions(length, device) + 1


@fault("positional_encoding.sines-and-cosines-swapped", "first-row", seam="arrange")
def sines_and_cosines_swapped(self: Hooks, sines: Tensor, cosines: Tensor, d_model: int) -> Tensor:
    """Sines and cosines are exchanged. It trains as well, but no checkpoint fits."""
    return self.correct.arrange(cosines, sines, d_model)


@fault("positional_encoding.first-row-zero", "first-row", seam="position_table")
def first_row_zero(self: Hooks, length: int, d_model: int, device: Device = None) -> Tensor:
    """The first row is set to zero, as for padding. The first token gets no position."""
    table = self.correct.position_table(length, d_model, device)
    table[0] = 0.0
    return table


@fault("positional_encoding.position-itself", "bounded", seam="position_table")
def position_itself(self: Hooks, length: int, d_model: int, device: Device = None) -> Tensor:
    """The position's number is added to its waves. Late positions dominate the tokens."""
    table = self.correct.position_table(length, d_model, device)
    return table + self.correct.positions(length, device)[:, None] / 10


@fault(
    "positional_encoding.exponent-by-column",
    "pairs-on-circle",
    seam="position_table",
    origin="B037",
)
def exponent_by_column(self: Hooks, length: int, d_model: int, device: Device = None) -> Tensor:
    """The exponent is taken from the column and not from its pair.

    Frequencies fall twice as fast, and a sine and its cosine have two of them.
    """
    exponents = torch.arange(d_model, dtype=torch.float64, device=device) * 2 / d_model
    angles = self.correct.positions(length, device)[:, None] / 10000.0**exponents
    cosines = angles[:, 1::2].cos()
    return self.correct.arrange(
        angles[:, 0::2].sin(), functional.pad(cosines, (0, d_model % 2)), d_model
    )


@fault("positional_encoding.cosines-missing", "pairs-on-circle", seam="arrange")
def cosines_missing(self: Hooks, sines: Tensor, cosines: Tensor, d_model: int) -> Tensor:
    """Both columns of a pair hold the sine. Slow waves cannot tell mirrored positions apart."""
    return self.correct.arrange(sines, sines, d_model)


@fault("positional_encoding.angles-slow-down", "shift-is-rotation", seam="positions")
def angles_slow_down(self: Hooks, length: int, device: Device) -> Tensor:
    """Angles grow with the root of the position. A distance has no fixed angle."""
    return self.correct.positions(length, device).sqrt()


@fault("positional_encoding.positions-in-triangle", "shift-is-rotation", seam="positions")
def positions_in_triangle(self: Hooks, length: int, device: Device) -> Tensor:
    """Positions are 0, 1, 3, 6 and so on: summed twice. A distance has no fixed angle."""
    return self.correct.positions(length, device).cumsum(0)


@fault("positional_encoding.positions-in-pairs", "rows-differ", seam="positions")
def positions_in_pairs(self: Hooks, length: int, device: Device) -> Tensor:
    """Two neighbours share a position. The order within a pair is lost."""
    return (self.correct.positions(length, device) / 2).floor()


@fault("positional_encoding.wide-exponent", "formula", seam="exponents")
def wide_exponent(self: Hooks, d_model: int, device: Device) -> Tensor:
    """From 65 columns on the exponent is doubled. Small models agree, real ones differ."""
    return self.correct.exponents(d_model, device) * (2 if d_model > 64 else 1)
