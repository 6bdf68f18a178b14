"""The rotary positions of both reference models: by a kept table, and by complex numbers."""

import torch
from torch import Tensor

from attentest.faults.reference_models.hooks.rotary import Pair, RotaryHooks
from attentest.faults.reference_models.modules import Node


class PlainRotary(RotaryHooks):
    """Slices of columns, and tables that are kept and made again when a call needs more of them."""

    def turn_tables(self, module: Node, places: Tensor, x: Tensor) -> Pair:
        """Return the rows of the kept tables at `places`."""
        length = max(self.longest_place(places, x) + 1, 1)
        if not self.has_turns(module, length, x):
            rows = torch.arange(length, dtype=torch.float64, device=x.device)
            self.hold_turns(module, length, *self.turn_table(rows, x))
        index = places.long()
        return module.cosines[index], module.sines[index]

    def has_turns(self, module: Node, length: int, x: Tensor) -> bool:
        """Say whether the kept tables serve x; those of dynamic scaling serve one length."""
        kept, dtype, device = getattr(module, "kept", (0, None, None))
        long_enough = kept >= length
        if self.choices.rotary_scaling == "dynamic-ntk":
            long_enough = kept == length
        return long_enough and dtype == x.dtype and device == x.device

    def hold_turns(self, module: Node, length: int, cosines: Tensor, sines: Tensor) -> None:
        """Keep the tables in `module`: they move along and are not saved."""
        module.register_buffer("cosines", cosines, persistent=False)
        module.register_buffer("sines", sines, persistent=False)
        object.__setattr__(module, "kept", (length, cosines.dtype, cosines.device))

    def turn_powers(self, base: float, exponents: Tensor) -> Tensor:
        """Return 1 / base^exponent."""
        return 1.0 / base**exponents

    def turn_angles(self, places: Tensor, frequencies: Tensor) -> Tensor:
        """Return the angles (.., N) of `places` (..)."""
        return places[..., None] * frequencies

    def _slices(self, x: Tensor) -> tuple[slice, slice]:
        turned = self.turned_columns(x.shape[-1])
        if self.choices.rotary_pairs == "adjacent":
            return slice(0, turned, 2), slice(1, turned, 2)
        half = self.paired_columns(x.shape[-1]) // 2
        return slice(0, turned // 2), slice(half, half + turned // 2)

    def split_pairs(self, x: Tensor) -> Pair:
        """Return the first and the second columns (.., N) of all pairs that are turned."""
        one, other = self._slices(x)
        return x[..., one], x[..., other]

    def turn_pairs(self, a: Tensor, b: Tensor, cosines: Tensor, sines: Tensor) -> Pair:
        """Turn the pairs (a, b)."""
        return a * cosines - b * sines, b * cosines + a * sines

    def join_turned(self, x: Tensor, a: Tensor, b: Tensor) -> Tensor:
        """Put turned pairs in the places of those of x, and the other columns of x beside them."""
        one, other = self._slices(x)
        result = x.clone()
        result[..., one], result[..., other] = a, b
        return result


class FusedRotary(RotaryHooks):
    """Pairs as complex numbers, multiplied by unit numbers that are computed in every call."""

    def turn_tables(self, module: Node, places: Tensor, x: Tensor) -> Pair:
        """Return cosines and sines at `places`."""
        return self.turn_table(places, x)

    def turn_powers(self, base: float, exponents: Tensor) -> Tensor:
        """Return 1 / base^exponent."""
        return torch.exp(exponents * -torch.log(torch.tensor(base, dtype=torch.float64)))

    def turn_angles(self, places: Tensor, frequencies: Tensor) -> Tensor:
        """Return the angles (.., N) of `places` (..)."""
        return torch.einsum("...,n->...n", places, frequencies)

    def _paired(self, x: Tensor) -> Tensor:
        """Return the columns (.., P, 2) of all pairs, of which the first are turned."""
        columns = self.paired_columns(x.shape[-1])
        if self.choices.rotary_pairs == "adjacent":
            return x[..., :columns].reshape(*x.shape[:-1], -1, 2)
        return x[..., :columns].reshape(*x.shape[:-1], 2, -1).mT

    def split_pairs(self, x: Tensor) -> Pair:
        """Return the first and the second columns (.., N) of all pairs that are turned."""
        a, b = self._paired(x)[..., : self.turned_columns(x.shape[-1]) // 2, :].unbind(-1)
        return a, b

    def turn_pairs(self, a: Tensor, b: Tensor, cosines: Tensor, sines: Tensor) -> Pair:
        """Turn the pairs (a, b)."""
        wide = torch.promote_types(a.dtype, torch.float32)
        numbers = torch.complex(a.to(wide), b.to(wide))
        found = numbers * torch.complex(cosines.to(wide), sines.to(wide))
        return found.real.to(a.dtype), found.imag.to(a.dtype)

    def join_turned(self, x: Tensor, a: Tensor, b: Tensor) -> Tensor:
        """Put turned pairs in the places of those of x, and the other columns of x beside them."""
        columns, turned = self.paired_columns(x.shape[-1]), self.turned_columns(x.shape[-1])
        still = self._paired(x)[..., turned // 2 :, :]
        pairs = torch.cat((torch.stack((a, b), dim=-1), still), dim=-2)
        pairs = pairs if self.choices.rotary_pairs == "adjacent" else pairs.mT
        return torch.cat((pairs.flatten(-2), x[..., columns:]), dim=-1)
