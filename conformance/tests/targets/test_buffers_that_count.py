"""Modules that keep statistics of their calls in buffers, and those whose buffers are drawn."""

from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn

from attentest.targets.adapt.code import code_of
from attentest.targets.adapt.reading import Reading
from attentest.targets.adapt.unspecified.drawn import drawn_buffers


class Counting(nn.LayerNorm):
    """Counts what it is trained with."""

    def __init__(self, dim: int) -> None:
        super().__init__(dim)
        self.register_buffer("usage", torch.zeros(1))

    def forward(self, x: Tensor) -> Tensor:
        if self.training:
            self.usage += x.numel()
        return super().forward(x)


class Drawing(nn.LayerNorm):
    """Draws features, as code of another kind of attention does."""

    def __init__(self, dim: int) -> None:
        super().__init__(dim)
        self.register_buffer("features", torch.randn(3))


def said(kind: type[nn.Module]) -> str:
    """Return what is reported of the buffers of a module that was trained with one call."""
    module = kind(20)
    module(torch.ones(2, 20))
    probe: Any = SimpleNamespace(built=module, dtype=torch.float64)
    return drawn_buffers(code_of(kind, Reading(component="layer_norm")), probe)


def test_buffer_that_counts_calls_is_not_drawn() -> None:
    assert said(Counting) == ""


def test_buffer_that_is_drawn_is_named() -> None:
    assert said(Drawing).startswith("the numbers of its buffer features are drawn")
