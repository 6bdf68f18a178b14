"""Modules that all models of a process share, as one that a cached function makes."""

from functools import lru_cache

import torch
from torch import nn

import attentest
from attentest_spec import Sizes

SLUGS = ["positional_encoding.half-precision", "positional_encoding.formula"]


def _table(length, width):
    """Return the sines and cosines of positions."""
    positions = torch.arange(length, dtype=torch.float64)[:, None]
    angles = positions / 10000 ** (torch.arange(0, width, 2, dtype=torch.float64) / width)
    table = torch.zeros(length, width, dtype=torch.float64)
    table[:, 0::2], table[:, 1::2] = angles.sin(), angles.cos()[:, : width // 2]
    return table


class Table(nn.Module):
    """A table of positions that moves with the model that holds it."""

    def __init__(self, length, width, trained=False):
        super().__init__()
        if trained:
            self.rows = nn.Parameter(torch.zeros(length, width, dtype=torch.float64))
        self.register_buffer("table", _table(length, width), persistent=False)


@lru_cache(1)
def shared_table(length, width):
    """Return one table for all models."""
    return Table(length, width)


class Positions(nn.Module):
    """Positions with a table that all of them share."""

    def __init__(self, d_model, max_len=600):
        super().__init__()
        self.rows = shared_table(max_len, d_model)

    def forward(self, x):
        """Add the positions."""
        return x + self.rows.table[: x.size(1)].to(x.dtype)


class OwnPositions(Positions):
    """Positions with a table of their own."""

    def __init__(self, d_model, max_len=600):
        super().__init__(d_model, max_len)
        self.rows = Table(max_len, d_model)


class WrongPositions(Positions):
    """Positions with a shared table, which begin at 1."""

    def forward(self, x):
        """Add the positions of the next tokens."""
        return x + self.rows.table[1 : x.size(1) + 1].to(x.dtype)


def test_a_shared_table_is_an_assumption_and_each_model_gets_a_copy() -> None:
    backend = attentest.adapted(Positions, "positional_encoding")
    assert [one for one in backend.assumed if "share the module rows" in one]
    assert attentest.check(Positions, "positional_encoding", clauses=SLUGS).conforms
    one, other = (backend.recipes["positional_encoding"].build(Sizes(d_model=4)) for _ in "ab")
    assert one.rows is not other.rows


def test_a_strict_reading_judges_models_that_share() -> None:
    backend = attentest.adapted(Positions, "positional_encoding", strict=True)
    assert not [one for one in backend.assumed if "share the module" in one]


def test_a_table_of_its_own_is_no_assumption() -> None:
    backend = attentest.adapted(OwnPositions, "positional_encoding")
    assert not [one for one in backend.assumed if "share the module" in one]


def test_a_mistake_next_to_a_shared_table_is_a_violation() -> None:
    assert not attentest.check(WrongPositions, "positional_encoding", clauses=SLUGS[1:]).conforms
