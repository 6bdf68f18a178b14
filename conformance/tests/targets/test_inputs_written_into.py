"""Code that writes into its input: a finding of its own, and neither a limit nor wrong numbers."""

import torch
from mistaken_code import broken
from torch import Tensor, nn

import attentest


class PositionalEncoding(nn.Module):
    """A table that each call makes, added to the tensor of the caller."""

    exponent = 1

    def table(self, x: Tensor) -> Tensor:
        positions = torch.arange(x.shape[1], dtype=x.dtype)[:, None]
        columns = torch.arange(0, x.shape[2], 2, dtype=x.dtype)
        angles = positions / 10000 ** (self.exponent * columns / x.shape[2])
        return torch.stack([angles.sin(), angles.cos()], -1).flatten(1)

    def forward(self, x: Tensor) -> Tensor:
        x += self.table(x)
        return x


class OtherFrequencies(PositionalEncoding):
    exponent = 3


FORMULA = "positional_encoding.formula"
WRITTEN = "positional_encoding wrote into its input number 0."


def test_encoding_that_writes_into_its_input_has_no_limit_of_length() -> None:
    backend = attentest.adapted(PositionalEncoding)
    assert backend.limits.length is None
    assert broken(backend, FORMULA, "positional_encoding.input-untouched") == [WRITTEN]


def test_input_that_is_written_into_does_not_hide_wrong_numbers() -> None:
    (message,) = broken(attentest.adapted(OtherFrequencies, "positional_encoding"), FORMULA)
    assert "The encoding added at position" in message


class FortyPositions(PositionalEncoding):
    """The same table for forty positions at most."""

    def table(self, x: Tensor) -> Tensor:
        if x.shape[1] > 40:
            raise ValueError(f"{x.shape[1]} positions are more than 40")
        return super().table(x)


def test_encoding_of_a_limited_length_has_that_limit() -> None:
    assert attentest.adapted(FortyPositions, "positional_encoding").limits.length == 40
