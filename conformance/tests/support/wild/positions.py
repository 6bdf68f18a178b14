"""Tables of sines and cosines that are computed in float32, as most are, and mistakes in them."""

import math

import torch
from torch import nn


class Table(nn.Module):
    """A table of ``max_len`` rows that is computed once, when the module is built."""

    def __init__(self, d_model, max_len=5000):
        super().__init__()
        self.register_buffer("pe", self.rows(max_len, d_model), persistent=False)

    def forward(self, x):
        if x.size(1) > self.pe.size(0):
            raise ValueError(f"{x.size(1)} positions; the table has {self.pe.size(0)}")
        return x + self.pe[: x.size(1)].to(x.dtype)

    def rows(self, length, width):
        places = torch.arange(length, dtype=torch.float32)[:, None]
        return self.arranged(self.angles(places, width), width)

    def angles(self, places, width):
        return places * torch.exp(torch.arange(0, width, 2) * (-math.log(10000.0) / width))

    def arranged(self, angles, width):
        table = torch.zeros(len(angles), width)
        table[:, 0::2] = angles.sin()
        table[:, 1::2] = angles.cos()[:, : width // 2]
        return table


class ByExponentialOfLogarithm(Table):
    pass


class ByPowers(Table):
    def angles(self, places, width):
        return places / 10000.0 ** (torch.arange(0, width, 2).float() / width)


class ByInversePowers(Table):
    def angles(self, places, width):
        return places * torch.pow(10000.0, -torch.arange(0, width, 2).float() / width)


class ByOuterProduct(Table):
    def angles(self, places, width):
        frequencies = 1.0 / (10000 ** (torch.arange(0, width, 2).float() / width))
        return torch.einsum("i,j->ij", places[:, 0], frequencies)


class InNumbersOfPython(Table):
    """Exact numbers, rounded when they are stored."""

    def rows(self, length, width):
        table = torch.zeros(length, width)
        for column in range(width):
            power = 10000.0 ** (2 * (column // 2) / width)
            angles = torch.arange(length, dtype=torch.float64) / power
            table[:, column] = angles.cos() if column % 2 else angles.sin()
        return table


class InHalves(Table):
    def arranged(self, angles, width):
        return torch.cat((angles.sin(), angles.cos()[:, : width // 2]), dim=1)


class FromTheThirdRow(Table):
    def rows(self, length, width):
        return super().rows(length + 2, width)[2:]


class MadeInEveryCall(Table):
    def __init__(self, d_model):
        nn.Module.__init__(self)

    def forward(self, x):
        return x + self.rows(*x.shape[1:]).to(x)


class FromRoundedFrequencies(nn.Module):
    """Frequencies that were computed in float32, and sines in the precision of the model."""

    def __init__(self, d_model):
        super().__init__()
        self.frequencies = (10000.0 ** -(torch.arange(0, d_model, 2).float() / d_model)).tolist()

    def forward(self, x):
        fine = torch.promote_types(x.dtype, torch.float32)
        frequencies = torch.tensor(self.frequencies, dtype=fine, device=x.device)
        places = torch.arange(x.size(1), dtype=fine, device=x.device)[:, None]
        angles = places * frequencies
        waves = torch.stack((angles.sin(), angles.cos()), dim=-1).flatten(1)
        return x + waves[:, : x.size(2)].to(x.dtype)


class ExponentOff(Table):
    def angles(self, places, width):
        return super().angles(places, 2 * width)[:, : (width + 1) // 2]


class SinesSwapped(Table):
    def arranged(self, angles, width):
        return super().arranged(math.pi / 2 - angles, width)


class BaseOfAThousand(Table):
    def angles(self, places, width):
        return places / 1000.0 ** (torch.arange(0, width, 2) / width)


class OneBehind(Table):
    def rows(self, length, width):
        return super().rows(length + 1, width)[1:]


class DividedAsIntegers(Table):
    def angles(self, places, width):
        return places / 10000.0 ** (torch.arange(0, width, 2) // width)


class RoundedToHalf(Table):
    def rows(self, length, width):
        return super().rows(length, width).half().float()


class PositionsInHalf(Table):
    def angles(self, places, width):
        return super().angles(places.half().float(), width)


class OddAsserted(Table):
    def __init__(self, d_model, max_len=5000):
        assert d_model % 2 == 0
        super().__init__(d_model, max_len)


class OddRefusedInWords(Table):
    def __init__(self, d_model, max_len=5000):
        if d_model % 2:
            raise ValueError("the embedding dimension must be even")
        super().__init__(d_model, max_len)


class OddRefusedByNumber(Table):
    def __init__(self, d_model, max_len=5000):
        if d_model % 2:
            raise ValueError(f"cannot pair the columns of an odd width ({d_model})")
        super().__init__(d_model, max_len)


class OddRefusedByShapes(Table):
    """One cosine too many for the columns that are left: torch refuses the assignment."""

    def arranged(self, angles, width):
        table = torch.zeros(len(angles), width)
        table[:, 0::2] = torch.sin(angles)
        table[:, 1::2] = torch.cos(angles)
        return table


class OddRefusedWhenCalled(MadeInEveryCall):
    def rows(self, length, width):
        if width % 2:
            raise NotImplementedError
        return super().rows(length, width)


class OddRefusedBesidesOne(Table):
    """The table of an odd width has a column more; the sum with a width of 1 has two columns."""

    def arranged(self, angles, width):
        return torch.cat((angles.sin(), angles.cos()), dim=1)


class OddWithoutItsLastColumn(Table):
    """An odd width is taken for the even one below it, and its last column stays empty."""

    def arranged(self, angles, width):
        even = width - width % 2
        table = torch.zeros(len(angles), width)
        table[:, 0:even:2] = angles.sin()[:, : even // 2]
        table[:, 1:even:2] = angles.cos()[:, : even // 2]
        return table


class OfAFixedLength(Table):
    """No argument says how long the table is."""

    def __init__(self, d_model):
        super().__init__(d_model, 300)
