"""Faults in the precision of positions, frequencies and angles."""

import torch
from torch import Tensor

from attentest.faults.fault import fault
from attentest.faults.reference_models import Hooks, Pair


@fault("rotary.frequencies-in-single", "arithmetic", seam="turn_frequencies")
def frequencies_in_single(
    self: Hooks, width: int, length: int, device: torch.device | None
) -> Tensor:
    """Frequencies are rounded to float32. A float64 model keeps seven digits of its angles."""
    return self.correct.turn_frequencies(width, length, device).float().double()


@fault("rotary.angles-in-single", "arithmetic", seam="turn_angles")
def angles_in_single(self: Hooks, places: Tensor, frequencies: Tensor) -> Tensor:
    """Angles are rounded to float32. A float64 model has float32 accuracy, and does not say so."""
    return self.correct.turn_angles(places, frequencies).float().double()


@fault("rotary.positions-in-bytes", "far-positions", seam="turn_places")
def positions_in_bytes(self: Hooks, x: Tensor, positions: Tensor | None) -> Tensor:
    """Positions are counted in two bytes. Position 65536 is position 0 again."""
    return self.correct.turn_places(x, positions) % 65_536


@fault("rotary.positions-overflow", "far-positions", seam="turn_places", origin="M068")
def positions_overflow(self: Hooks, x: Tensor, positions: Tensor | None) -> Tensor:
    """Positions pass through float16, whose largest number is 65504. All later ones coincide."""
    return self.correct.turn_places(x, positions).clamp(max=65_504)


@fault("rotary.positions-in-half-precision", "half-precision", seam="turn_places", origin="M068")
def positions_in_half_precision(self: Hooks, x: Tensor, positions: Tensor | None) -> Tensor:
    """Positions are rounded to the precision of x. Far neighbours get one position."""
    return self.correct.turn_places(x, positions).to(x.dtype).double()


def _with_rounded(self: Hooks, places: Tensor, x: Tensor, *, angles: bool) -> Pair:
    """Return the waves at `places` with angles or frequencies in the precision of x."""
    length = self.longest_place(places, x) + 1
    frequencies = self.turn_frequencies(x.shape[-1], length, x.device)
    found = self.turn_angles(places, frequencies if angles else frequencies.to(x.dtype).double())
    waves = self.turn_waves(found.to(x.dtype).double() if angles else found)
    return self.round_turns(waves, x.dtype)


@fault("rotary.frequencies-in-half-precision", "half-precision", seam="turn_table", origin="M067")
def frequencies_in_half_precision(self: Hooks, places: Tensor, x: Tensor) -> Pair:
    """Frequencies are converted with the model. Far positions are turned by anything."""
    return _with_rounded(self, places, x, angles=False)


@fault("rotary.angles-in-half-precision", "half-precision", seam="turn_table", origin="M067")
def angles_in_half_precision(self: Hooks, places: Tensor, x: Tensor) -> Pair:
    """The product of positions and frequencies is rounded, as mixed precision does it.

    Far positions are off by whole turns.
    """
    return _with_rounded(self, places, x, angles=True)
