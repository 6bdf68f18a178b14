"""Modules are moved and cast in one pass, and moved by their own method where they have one."""

from collections.abc import Callable
from typing import Any, Self

import pytest
import torch
from torch import nn

from attentest_spec.names import UnknownName
from attentest_spec.torch.values import convert


class Counting(nn.Linear):
    """A linear map that counts how often its tensors are converted."""

    passes = 0

    def _apply(self, fn: Callable[..., Any], recurse: bool = True) -> Self:
        self.passes += 1
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        return self


class OwnTo(Counting):
    """A module with a table that torch does not know, which its own `to` moves."""

    moved: Any = None

    def to(self, *given: Any, **named: Any) -> Self:
        self.moved = given
        return super().to(*given, **named)


def test_conversion_is_one_pass() -> None:
    module = Counting(2, 3)
    assert convert(module, "float64", "cpu") is module
    assert module.passes == 1
    assert module.weight.dtype == module.bias.dtype == torch.float64


def test_a_module_is_moved_by_its_own_method() -> None:
    module = OwnTo(2, 3)
    convert(module, "float32", "cpu")
    assert module.moved == ("cpu",)
    assert module.passes == 2


@pytest.mark.parametrize("precision", ["float64", "float32", "bfloat16", "float16"])
def test_whole_and_complex_numbers_keep_their_type(precision: str) -> None:
    module = nn.Module()
    for kind in (torch.complex64, torch.int64, torch.bool, torch.float32):
        module.register_buffer(str(kind).partition(".")[2], torch.ones(2, dtype=kind))
    convert(module, precision, "cpu")
    kinds = [one.dtype for one in module.buffers()]
    wanted = getattr(torch, precision)
    assert kinds == [torch.complex64, torch.int64, torch.bool, wanted]


def test_a_parameter_in_two_places_stays_one() -> None:
    module = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    module[1].weight = module[0].weight
    convert(module, "float64", "cpu")
    assert module[1].weight is module[0].weight
    assert module[0].weight.dtype == torch.float64


def test_an_unknown_precision_is_refused_before_anything_moves() -> None:
    module = Counting(2, 3)
    with pytest.raises(UnknownName, match="float8"):
        convert(module, "float8", "cpu")
    assert module.passes == 0
