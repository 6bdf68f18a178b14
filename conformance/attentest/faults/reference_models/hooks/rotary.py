"""The hooks of rotary positions."""

import math
from abc import abstractmethod

import torch
from torch import Tensor

from attentest.faults.reference_models.hooks.base import Base
from attentest.faults.reference_models.modules import Node

Pair = tuple[Tensor, Tensor]
"""Cosines and sines, or the first and the second columns of all pairs."""


class RotaryHooks(Base):
    """Pairs of columns are turned by angles that are proportional to the position."""

    def make_rotary(self) -> Node:
        """Build the rotary positions, which hold no parameters."""
        self.check_sizes("d_model", "heads")
        self.check_heads()
        return Node(self, "rotary")

    def rotary(self, module: Node, x: Tensor, positions: Tensor | None = None) -> Tensor:
        """Turn x (B, H, L, E) as at positions (B, L), by default 0 to L - 1."""
        self.check_turned(x.shape[-1])
        places = self.turn_places(x, positions)
        cosines, sines = self.turn_tables(module, places, x)
        return self.turn(x, cosines, sines)

    def check_turned(self, width: int) -> None:
        """Refuse heads of an odd width."""
        if width % 2:
            raise ValueError(f"A head of {width} columns has no pairs; the width must be even.")

    def turn_places(self, x: Tensor, positions: Tensor | None) -> Tensor:
        """Return the positions (B, L) or (1, L), in float64."""
        if positions is None:
            return self.turn_default(x)
        return positions.to(torch.float64)

    def turn_default(self, x: Tensor) -> Tensor:
        """Return the positions (1, L) of tokens that are given none."""
        return torch.arange(x.shape[2], dtype=torch.float64, device=x.device)[None]

    @abstractmethod
    def turn_tables(self, module: Node, places: Tensor, x: Tensor) -> Pair:
        """Return cosines and sines (.., L, N) at `places`, in the precision of x."""

    def has_turns(self, module: Node, length: int, x: Tensor) -> bool:
        """Say whether kept tables serve x; a model that keeps none never calls this."""
        return False

    def hold_turns(self, module: Node, length: int, cosines: Tensor, sines: Tensor) -> None:
        """Keep tables in `module`; a model that keeps none never calls this."""

    def turn_table(self, places: Tensor, x: Tensor) -> Pair:
        """Compute cosines and sines (.., N) at `places` (..), and round them at the end."""
        length = self.longest_place(places, x) + 1
        frequencies = self.turn_frequencies(x.shape[-1], length, x.device)
        angles = self.turn_angles(places, frequencies)
        return self.round_turns(self.turn_waves(angles), x.dtype)

    def longest_place(self, places: Tensor, x: Tensor) -> int:
        """Return the greatest of the positions."""
        return x.shape[2] - 1 if places.device.type == "meta" else int(places.max())

    def turned_columns(self, width: int) -> int:
        """Return how many of the columns are turned."""
        part = self.choices.rotary_width
        return width if part == "whole" else int(float(part) * width) // 2 * 2

    def paired_columns(self, width: int) -> int:
        """Return the width whose pairs and frequencies are used."""
        proportional = self.choices.rotary_partial == "proportional"
        return width if proportional else self.turned_columns(width)

    def rotary_base(self) -> float:
        """Return the base, before any scaling."""
        return float(self.choices.rotary_base)

    def rotary_factor(self) -> float:
        """Return the factor of the scaling."""
        return self.sizes.rotary_factor

    def trained_length(self) -> int:
        """Return the length of the texts of training."""
        return self.sizes.trained_length

    def scale_base(self, base: float, columns: int, length: int) -> float:
        """Return the base with one of the two scalings that change it."""
        rule, factor = self.choices.rotary_scaling, self.rotary_factor()
        if columns == 2 or rule not in ("ntk", "dynamic-ntk"):
            return base
        if rule == "dynamic-ntk":
            factor = self.dynamic_factor(factor, length)
        return base * float(factor ** (columns / (columns - 2)))

    def dynamic_factor(self, factor: float, length: int) -> float:
        """Return the factor of dynamic scaling for a text of `length` tokens."""
        trained = self.trained_length()
        return factor * length / trained - (factor - 1) if length > trained else 1.0

    def turn_exponents(self, columns: int, turned: int) -> Tensor:
        """Return the exponents 2i/r of all pairs that are turned."""
        return torch.arange(0, turned, 2, dtype=torch.float64) / columns

    @abstractmethod
    def turn_powers(self, base: float, exponents: Tensor) -> Tensor:
        """Return 1 / base^exponent."""

    def turn_frequencies(self, width: int, length: int, device: torch.device | None) -> Tensor:
        """Return the angle between neighbouring positions for every pair."""
        columns, turned = self.paired_columns(width), self.turned_columns(width)
        base = self.scale_base(self.rotary_base(), columns, length)
        found = self.turn_powers(base, self.turn_exponents(columns, turned))
        return self.scale_turns(found, base, columns).to(device)

    def scale_turns(self, frequencies: Tensor, base: float, columns: int) -> Tensor:
        """Return the frequencies with one of the scalings that change each by itself."""
        match self.choices.rotary_scaling:
            case "linear":
                return frequencies / self.rotary_factor()
            case "yarn":
                kept = self.yarn_ramp(columns, base, len(frequencies))
            case "llama3":
                kept = self.llama3_ramp(frequencies)
            case _:
                return frequencies
        return self.mix_turns(frequencies, frequencies / self.rotary_factor(), kept)

    def mix_turns(self, own: Tensor, divided: Tensor, kept: Tensor) -> Tensor:
        """Return the mean of both frequencies, of which a share `kept` is the own one."""
        return own * kept + divided * (1 - kept)

    def yarn_ramp(self, columns: int, base: float, pairs: int) -> Tensor:
        """Return which share of its frequency each pair keeps."""
        low, high = (self.pair_that_turns(full, columns, base) for full in (32, 1))
        low, high = max(math.floor(low), 0), min(math.ceil(high), columns - 1)
        places = torch.arange(pairs, dtype=torch.float64)
        return 1 - ((places - low) / max(high - low, 1e-3)).clamp(0, 1)

    def pair_that_turns(self, full: float, columns: int, base: float) -> float:
        """Return the number of the pair that turns `full` times over the trained length."""
        wave = self.trained_length() / (full * 2 * math.pi)
        return columns * math.log(wave) / (2 * math.log(base))

    def llama3_ramp(self, frequencies: Tensor) -> Tensor:
        """Return which share of its frequency each pair keeps."""
        full = self.trained_length() / (2 * math.pi / frequencies)
        return ((full - 1) / (4 - 1)).clamp(0, 1)

    @abstractmethod
    def turn_angles(self, places: Tensor, frequencies: Tensor) -> Tensor:
        """Return the angles (.., N) of `places` (..)."""

    def turn_magnitude(self) -> float:
        """Return what sines and cosines are multiplied by."""
        declared = self.choices.rotary_magnitude
        if declared != "as-scaling":
            return float(declared)
        yarn = self.choices.rotary_scaling == "yarn"
        return 0.1 * math.log(self.rotary_factor()) + 1.0 if yarn else 1.0

    def turn_waves(self, angles: Tensor) -> Pair:
        """Return cosines and sines of the angles, multiplied by the factor."""
        factor = self.turn_magnitude()
        backward = self.choices.rotary_direction == "backward"
        return angles.cos() * factor, (-angles if backward else angles).sin() * factor

    def round_turns(self, waves: Pair, dtype: torch.dtype) -> Pair:
        """Return sines and cosines in `dtype`, rounded to single precision where it is chosen."""
        if self.choices.rotary_arithmetic == "float32":
            waves = waves[0].float(), waves[1].float()
        return waves[0].to(dtype), waves[1].to(dtype)

    def spread_turns(self, table: Tensor) -> Tensor:
        """Return a table (B, L, N) for all heads, as (B, 1, L, N)."""
        return table[:, None]

    def turn(self, x: Tensor, cosines: Tensor, sines: Tensor) -> Tensor:
        """Turn x (B, H, L, E), and let the columns pass that are not turned."""
        a, b = self.split_pairs(x)
        turned = self.turn_pairs(a, b, self.spread_turns(cosines), self.spread_turns(sines))
        return self.join_turned(x, *turned)

    @abstractmethod
    def split_pairs(self, x: Tensor) -> Pair:
        """Return the first and the second columns (.., N) of all pairs that are turned."""

    @abstractmethod
    def turn_pairs(self, a: Tensor, b: Tensor, cosines: Tensor, sines: Tensor) -> Pair:
        """Turn the pairs (a, b)."""

    @abstractmethod
    def join_turned(self, x: Tensor, a: Tensor, b: Tensor) -> Tensor:
        """Put turned pairs in the places of those of x, and the other columns of x beside them."""
