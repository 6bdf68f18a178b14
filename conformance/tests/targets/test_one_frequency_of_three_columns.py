"""Positions of half as many frequencies as columns, which two of three columns share."""

import torch
from torch import nn

import attentest


class PositionalEncoding(nn.Module):
    """Sines and cosines of d // 2 frequencies, which refuse odd widths from 5 on."""

    def __init__(self, dim, max_len=4096):
        super().__init__()
        places = torch.arange(max_len, dtype=torch.float64)[:, None]
        divisors = 10000 ** (2 * torch.arange(dim // 2, dtype=torch.float64) / dim)
        table = torch.zeros(max_len, dim, dtype=torch.float64)
        table[:, 0::2], table[:, 1::2] = self.waves(places / divisors)
        self.register_buffer("table", table, persistent=False)

    def waves(self, angles):
        """Return the even and the odd columns."""
        return angles.sin(), angles.cos()

    def forward(self, x):
        """Add the positions."""
        return x + self.table[: x.shape[1]].to(x.dtype)


class SinesAlone(PositionalEncoding):
    """One with sines in all columns."""

    def waves(self, angles):
        """Return sines."""
        return angles.sin(), angles.sin()


SLUGS = ["positional_encoding.odd-width", "positional_encoding.formula"]


def test_a_frequency_that_two_of_three_columns_share_is_no_odd_width() -> None:
    assert attentest.check(PositionalEncoding, clauses=SLUGS).conforms


def test_sines_in_all_columns_are_a_violation() -> None:
    assert not attentest.check(SinesAlone, "positional_encoding", clauses=SLUGS[1:]).conforms
