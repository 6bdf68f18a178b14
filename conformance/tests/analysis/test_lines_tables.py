"""Lines of tables of positions in single precision, as most code has them."""

import math

import pytest
import torch
from torch import nn

from attentest.analysis.lines import cases
from attentest.analysis.lines.locate import locate
from attentest.judging.bench import Bench
from attentest.results.verdict import Location
from attentest_spec import Sizes
from attentest_spec.torch import Recipe, TorchBackend


class Encoding(nn.Module):
    """Sines and cosines that are computed once, in float32."""

    base = 10000.0

    def __init__(self, d_model, max_len):
        super().__init__()
        self.register_buffer("table", torch.zeros(max_len, d_model))
        place = torch.arange(max_len).float().unsqueeze(1)
        rates = torch.exp(torch.arange(0, d_model, 2).float() * -(math.log(self.base) / d_model))
        self.table[:, 0::2] = torch.sin(place * rates)
        self.table[:, 1::2] = self.cosines(place, rates)

    def cosines(self, place, rates):
        return torch.cos(place * rates)

    def forward(self, x):
        return x + self.table[: x.size(1)].to(x.dtype)


class OtherBase(Encoding):
    base = 1000.0


class AddedRates(Encoding):
    def cosines(self, place, rates):
        return torch.cos(place + rates)


class SinesTwice(Encoding):
    def cosines(self, place, rates):
        return torch.sin(place * rates)


class CosinesInThePlaceOfSines(nn.Module):
    """A table whose second half of columns is written over the first."""

    def __init__(self, d_model, max_len):
        super().__init__()
        self.register_buffer("table", torch.zeros(max_len, d_model))
        place = torch.arange(max_len).float().unsqueeze(1)
        rates = torch.exp(torch.arange(0, d_model, 2).float() * -(math.log(10000.0) / d_model))
        self.table[:, 0::2] = torch.sin(place * rates)
        self.table[:, 0::2] = torch.cos(place * rates)

    def forward(self, x):
        return x + self.table[: x.size(1)].to(x.dtype)


@pytest.mark.parametrize(
    ("wrong", "code"),
    [
        (OtherBase, "rates = torch.exp("),
        (AddedRates, "torch.cos(place + rates)"),
        (SinesTwice, "return torch.sin(place * rates)"),
    ],
)
def test_line_of_a_wrong_table_is_named(wrong: type[Encoding], code: str) -> None:
    location = _line(wrong)
    assert code in location.code
    assert location.confirmed


def test_line_that_writes_over_right_columns_is_named() -> None:
    location = _line(CosinesInThePlaceOfSines)
    assert location.code == "self.table[:, 0::2] = torch.cos(place * rates)"


def _line(wrong: type[nn.Module]) -> Location:
    def build(sizes: Sizes) -> nn.Module:
        return wrong(sizes.d_model, sizes.max_length)

    backend = TorchBackend(
        name="tables", title="Tables", recipes={"positional_encoding": Recipe(build)}
    )
    subject = Bench(backend).subject()
    case = next(cases.own_cases(subject, "positional_encoding"))
    location = locate(subject, case.steps, {})
    assert location is not None
    return location
