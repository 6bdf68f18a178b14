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


class Learned(nn.Module):
    """Trained rows that are asked for by numbers which another line makes."""

    def __init__(self, d_model, max_len):
        super().__init__()
        self.rows = nn.Embedding(max_len, d_model)
        self.register_buffer("numbers", torch.arange(max_len))
        self.register_buffer("later", torch.arange(1, max_len + 1) % max_len)

    def places(self, length):
        return self.later[:length]

    def forward(self, x):
        places = self.places(x.size(1))
        rows = self.rows(places)
        return x + rows


class Shifted(Learned):
    def places(self, length):
        return self.numbers[1 : length + 1]


class Backwards(Learned):
    def places(self, length):
        places = self.numbers[:length]
        return places.flip(0)


@pytest.mark.parametrize(
    ("wrong", "code"),
    [
        (Learned, 'self.register_buffer("later", torch.arange(1, max_len + 1) % max_len)'),
        (Shifted, "return self.numbers[1 : length + 1]"),
        (Backwards, "return places.flip(0)"),
    ],
)
def test_line_that_makes_wrong_numbers_of_rows_is_named(wrong: type[Learned], code: str) -> None:
    location = _line(wrong)
    assert location.code == code
    assert location.expected == "the numbers of the positions: 0, 1, 2, .."


class WrongRows(Learned):
    def places(self, length):
        return self.numbers[:length]

    def forward(self, x):
        rows = self.rows(self.places(x.size(1))) * 2
        return x + rows


def test_wrong_rows_of_right_numbers_are_named_themselves() -> None:
    location = _line(WrongRows)
    assert location.code == "rows = self.rows(self.places(x.size(1))) * 2"
    assert location.expected != "the numbers of the positions: 0, 1, 2, .."


def _line(wrong: type[nn.Module]) -> Location:
    def build(sizes: Sizes) -> nn.Module:
        return wrong(sizes.d_model, sizes.max_length)

    learned = issubclass(wrong, Learned)
    recipe = Recipe(build, parameters={"weight": "rows.weight"} if learned else {})
    backend = TorchBackend(
        name="tables",
        title="Tables",
        recipes={"positional_encoding": recipe},
        choices={"positional_encoding": "learned"} if learned else {},
    )
    subject = Bench(backend).subject()
    case = next(cases.own_cases(subject, "positional_encoding"))
    location = locate(subject, case.steps, {})
    assert location is not None
    return location
