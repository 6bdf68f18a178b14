"""Unusual implementations of the gated feed-forward network."""

import torch
from torch import Tensor, nn
from torch.nn import functional

from attentest.faults.unusual.member import module
from attentest_spec import Place, Sizes, Table


class PackedGate(nn.Module):
    """Value and gate in one matrix, the value first."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        self.wi = nn.Linear(sizes.d_model, 2 * sizes.d_ff)
        self.wo = nn.Linear(sizes.d_ff, sizes.d_model)

    def forward(self, x: Tensor) -> Tensor:
        """Return the output for x."""
        value, gate = self.wi(x).chunk(2, dim=-1)
        found: Tensor = self.wo(value * functional.gelu(gate))
        return found


class InterleavedGate(nn.Module):
    """Gate and value in one matrix, column by column."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        self.up = nn.Linear(sizes.d_model, 2 * sizes.d_ff)
        self.down = nn.Linear(sizes.d_ff, sizes.d_model)

    def forward(self, x: Tensor) -> Tensor:
        """Return the output for x."""
        pairs = self.up(x).unflatten(-1, (-1, 2))
        found: Tensor = self.down(functional.silu(pairs[..., 0]) * pairs[..., 1])
        return found


class NumberedGate(nn.Module):
    """Three matrices with numbers for names, and no bias."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        self.w1 = nn.Linear(sizes.d_model, sizes.d_ff, bias=False)
        self.w2 = nn.Linear(sizes.d_ff, sizes.d_model, bias=False)
        self.w3 = nn.Linear(sizes.d_model, sizes.d_ff, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """Return the output for x."""
        found: Tensor = self.w2(functional.silu(self.w1(x)) * self.w3(x))
        return found


class SquaredUnits(nn.Module):
    """Units that are multiplied by the part of them that is positive."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        self.up = nn.Linear(sizes.d_model, sizes.d_ff)
        self.down = nn.Linear(sizes.d_ff, sizes.d_model)

    def forward(self, x: Tensor) -> Tensor:
        """Return the output for x."""
        units = self.up(x)
        found: Tensor = self.down(torch.where(units > 0, units, 0.0) * units)
        return found


class LibraryGate(nn.Module):
    """The library's gated linear unit, whose second half is the gate."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(sizes.d_model, 2 * sizes.d_ff), nn.GLU(), nn.Linear(sizes.d_ff, sizes.d_model)
        )

    def forward(self, x: Tensor) -> Tensor:
        """Return the output for x."""
        found: Tensor = self.layers(x)
        return found


class StackedGate(nn.Module):
    """Both matrices as one array of three axes, and a product by einsum."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        self.both = nn.Parameter(torch.randn(2, sizes.d_model, sizes.d_ff) / 4)
        self.back = nn.Parameter(torch.randn(sizes.d_ff, sizes.d_model) / 4)

    def forward(self, x: Tensor) -> Tensor:
        """Return the output for x."""
        gate, value = torch.einsum("...d,ndf->n...f", x, self.both)
        found: Tensor = torch.relu(gate) * value @ self.back
        return found


_HALVES: Table = {
    "inner": Place("wi", part=(0, 2)),
    "gate": Place("wi", part=(1, 2)),
    "outer": "wo",
}
_PAIRS: Table = {
    "gate.weight": Place("up.weight", part=(0, 2), layout="(f n) d -> (n f) d"),
    "gate.bias": Place("up.bias", part=(0, 2), layout="(f n) -> (n f)"),
    "inner.weight": Place("up.weight", part=(1, 2), layout="(f n) d -> (n f) d"),
    "inner.bias": Place("up.bias", part=(1, 2), layout="(f n) -> (n f)"),
    "outer": "down",
}
_GLU: Table = {
    "inner": Place("layers.0", part=(0, 2)),
    "gate": Place("layers.0", part=(1, 2)),
    "outer": "layers.2",
}
_STACKED: Table = {
    "gate.weight": Place("both", part=(0, 2), layout="n d f -> (n f) d"),
    "inner.weight": Place("both", part=(1, 2), layout="n d f -> (n f) d"),
    "outer.weight": Place("back", transpose=True),
}

MEMBERS = (
    module(
        "feed_forward",
        SquaredUnits,
        "a squared ReLU as the product of a unit and its positive part",
        {"inner": "up", "outer": "down"},
        activation="relu-squared",
    ),
    module(
        "feed_forward",
        PackedGate,
        "a gate packed behind the value, with GELU",
        _HALVES,
        feed_forward_gate="gated",
        activation="gelu",
    ),
    module(
        "feed_forward",
        InterleavedGate,
        "gate and value interleaved in one matrix",
        _PAIRS,
        feed_forward_gate="gated",
        activation="silu",
    ),
    module(
        "feed_forward",
        NumberedGate,
        "a gated network without biases whose matrices are numbered",
        {"gate": "w1", "inner": "w3", "outer": "w2"},
        feed_forward_gate="gated",
        activation="silu",
        feed_forward_bias="none",
    ),
    module(
        "feed_forward",
        LibraryGate,
        "the gated linear unit of the library",
        _GLU,
        feed_forward_gate="gated",
        activation="sigmoid",
    ),
    module(
        "feed_forward",
        StackedGate,
        "both matrices of a gated network in one array of three axes",
        _STACKED,
        feed_forward_gate="gated",
        activation="relu",
        feed_forward_bias="none",
    ),
)
