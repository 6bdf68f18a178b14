"""Unusual rotary positions: complex numbers, matrices, permuted columns and kept tables."""

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor, nn

from attentest.faults.unusual.member import function, module
from attentest_spec import Sizes

Positions = Tensor | None


def _angles(x: Tensor, positions: Positions, base: float = 10_000.0) -> Tensor:
    """Return the angles (B, 1, L, E/2) of all tokens, in float64; ValueError for an odd E."""
    if x.shape[-1] % 2:
        raise ValueError(f"The width of a head is {x.shape[-1]}; it must be even.")
    steps = torch.arange(x.shape[2], dtype=torch.float64, device=x.device)
    places = steps[None] if positions is None else positions.double()
    waves = base ** (torch.arange(0, x.shape[-1], 2, dtype=torch.float64) / x.shape[-1])
    return (places[..., None] / waves.to(x.device))[:, None]


def complex_turns(x: Tensor, positions: Positions = None) -> Tensor:
    """Multiply pairs by complex numbers of length 1."""
    angles = _angles(x, positions)
    wide = torch.promote_types(x.dtype, torch.float32)
    pairs = torch.view_as_complex(x.to(wide).reshape(*x.shape[:-1], -1, 2).contiguous())
    turned = pairs * torch.polar(torch.ones_like(angles), angles)
    return torch.view_as_real(turned).flatten(-2).to(x.dtype)


def rotated_halves(x: Tensor, positions: Positions = None) -> Tensor:
    """Add x times cosines to a copy with exchanged halves times sines."""
    angles = torch.cat((_angles(x, positions),) * 2, dim=-1)
    first, second = x.chunk(2, dim=-1)
    exchanged = torch.cat((second.neg(), first), dim=-1)
    return x * angles.cos().to(x.dtype) + exchanged * angles.sin().to(x.dtype)


def block_matrices(x: Tensor, positions: Positions = None) -> Tensor:
    """Multiply every token by a matrix of its own, with blocks of two by two."""
    angles = _angles(x, positions)
    blocks = torch.stack((angles.cos(), -angles.sin(), angles.sin(), angles.cos()), dim=-1)
    width = x.shape[-1]
    matrix = torch.zeros(*angles.shape[:-1], width, width, dtype=torch.float64, device=x.device)
    even = torch.arange(0, width, 2)
    matrix[..., even, even], matrix[..., even, even + 1] = blocks[..., 0], blocks[..., 1]
    matrix[..., even + 1, even], matrix[..., even + 1, even + 1] = blocks[..., 2], blocks[..., 3]
    return (matrix @ x.double()[..., None])[..., 0].to(x.dtype)


def from_exponential(x: Tensor, positions: Positions = None) -> Tensor:
    """Turn by the exponential of a generator, in steps of NumPy."""
    angles = _angles(x, positions).numpy()
    turned = np.exp(1j * angles)
    real, imaginary = (torch.from_numpy(one).to(x) for one in (turned.real, turned.imag))
    a, b = x[..., 0::2], x[..., 1::2]
    return torch.stack((a * real - b * imaginary, a * imaginary + b * real), dim=-1).reshape(
        x.shape
    )


def three_shears(x: Tensor, positions: Positions = None) -> Tensor:
    """Turn every pair by three shears, the first and the last of half of the angle."""
    angles = torch.remainder(_angles(x, positions) + torch.pi, 2 * torch.pi) - torch.pi
    # Near a half turn the tangent is large: turn by a quarter first, which exchanges the columns.
    sign = torch.where(angles.abs() > torch.pi / 2, angles.sign(), torch.zeros_like(angles))
    angles = angles - sign * torch.pi / 2
    a, b = x.double()[..., 0::2], x.double()[..., 1::2]
    a, b = torch.where(sign == 0, a, -sign * b), torch.where(sign == 0, b, sign * a)
    half = torch.tan(angles / 2)
    a = a - half * b
    b = b + angles.sin() * a
    a = a - half * b
    return torch.stack((a, b), dim=-1).flatten(-2).to(x.dtype)


class KeptTable(nn.Module):
    """A table in float32 that is made for all positions at once, in a model of any precision."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        width = sizes.d_model // sizes.heads
        if width % 2:
            raise ValueError(f"The width of a head is {width}; it must be even.")
        waves = 1.0 / 10_000 ** (torch.arange(0, width, 2).float() / width)
        angles = torch.outer(torch.arange(sizes.max_length).float(), waves)
        self.table: list[Tensor] = [angles.cos(), angles.sin()]

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> nn.Module:
        """Move the table with the module, and keep its precision."""
        self.table = [one.to(fn(one).device) for one in self.table]
        return super()._apply(fn, recurse)  # type: ignore[no-untyped-call, no-any-return]

    def forward(self, x: Tensor, positions: Positions = None) -> Tensor:
        """Turn x (B, H, L, E) with the columns of a pair side by side, stacked again."""
        if x.shape[2] > len(self.table[0]):
            raise ValueError(f"{x.shape[2]} tokens, and a table of {len(self.table[0])} rows")
        rows = torch.arange(x.shape[2], device=x.device)[None] if positions is None else positions
        cosines, sines = (one[rows][:, None].to(x.dtype) for one in self.table)
        a, b = x.reshape(*x.shape[:-1], -1, 2).unbind(-1)
        return torch.stack((a * cosines - b * sines, b * cosines + a * sines), dim=-1).flatten(-2)


class GrowingTable(nn.Module):
    """Half of every head is turned by a table of the needed length, which grows by doubling."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        turned = sizes.d_model // sizes.heads // 4 * 2
        inverse = 10_000 ** -(torch.arange(0, turned, 2, dtype=torch.float64) / turned)
        self.inverse = inverse.tolist()
        self.rows = 4

    def forward(self, x: Tensor, positions: Positions = None) -> Tensor:
        """Turn the first half of the columns of x (B, H, L, E), paired in halves."""
        steps = torch.arange(x.shape[2], device=x.device)
        places = steps[None] if positions is None else positions
        while places.device.type != "meta" and self.rows <= int(places.max()):
            self.rows *= 2
        waves = torch.tensor(self.inverse, dtype=torch.float64, device=x.device)
        rows = torch.arange(self.rows, dtype=torch.float64, device=x.device)
        angles = rows[:, None] * waves
        cosines, sines = (one.to(x.dtype)[places][:, None] for one in (angles.cos(), angles.sin()))
        pairs = len(self.inverse)
        a, b, rest = x[..., :pairs], x[..., pairs : 2 * pairs], x[..., 2 * pairs :]
        return torch.cat((a * cosines - b * sines, b * cosines + a * sines, rest), dim=-1)


class PermutedColumns(nn.Module):
    """Halves whose columns are brought side by side, turned as complex numbers and put back."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        width = sizes.d_model // sizes.heads
        if width % 2:
            raise ValueError(f"A width of {width} has no halves.")
        self.order = [c for pair in range(width // 2) for c in (pair, pair + width // 2)]

    def forward(self, x: Tensor, positions: Positions = None) -> Tensor:
        """Turn x (B, H, L, E)."""
        place = torch.tensor(self.order, device=x.device)
        return complex_turns(x[..., place], positions)[..., place.argsort()]


MEMBERS = (
    function("rotary", complex_turns, "pairs as complex numbers, multiplied by unit numbers"),
    function(
        "rotary",
        rotated_halves,
        "x and its exchanged halves, each times a wide table",
        rotary_pairs="halves",
    ),
    function("rotary", block_matrices, "a block-diagonal matrix for every token"),
    function(
        "rotary", from_exponential, "the complex exponential of NumPy, and pairs stacked again"
    ),
    function("rotary", three_shears, "every turn as a product of three shears"),
    module(
        "rotary",
        KeptTable,
        "a table in float32 inside of a model of any precision",
        rotary_arithmetic="float32",
    ),
    module(
        "rotary",
        GrowingTable,
        "half of each head, by a table that doubles when it is too short",
        rotary_pairs="halves",
        rotary_width=0.5,
    ),
    module(
        "rotary",
        PermutedColumns,
        "halves that are permuted, turned as pairs, and put back",
        rotary_pairs="halves",
    ),
)
