"""Values as Python code: what a reproduction hands to code that a user wrote."""

import dataclasses
import enum
import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from attentest.harness.reproduction import numbers
from attentest.targets.adapt.construction import Construction
from attentest.targets.adapt.fillings import Filling
from attentest.targets.adapt.wrappers.batches import of_items
from attentest.targets.adapt.wrappers.own_heads import own_heads
from attentest.targets.adapt.wrappers.own_layers import own_layers
from attentest.targets.constants.copies import copied
from attentest.targets.models.tables.vocabularies import Vocabulary
from attentest.targets.origin import origin
from attentest_spec import Sizes
from attentest_spec.torch import to_array

FEW = 64
"""Largest number of equal values that are written one by one."""


@dataclass(frozen=True)
class Expression:
    """Code in the place of its value."""

    text: str


class Writer:
    """Writes values as expressions, and collects the imports that these need."""

    def __init__(self) -> None:
        self.imports: list[str] = ["import torch"]

    def need(self, *lines: str) -> None:
        """Add the lines that are not there yet."""
        self.imports += [one for one in lines if one and one not in self.imports]

    def value(self, value: Any) -> str:
        """Return an expression for `value`."""
        match value:
            case Expression(text):
                return text
            case Tensor():
                return tensor(value)
            case Vocabulary():
                return f"{Vocabulary.__name__}({value.size}, {value.pad})"
            case float() if value != value or value in (np.inf, -np.inf):
                return f"float({str(value)!r})"
            case enum.Enum():
                return f"{self.named(type(value))}.{value.name}"
            case None | bool() | int() | float() | str() | bytes() | torch.dtype() | torch.device():
                return repr(value)
            case Mapping():
                rows = (f"{self.value(one)}: {self.value(held)}" for one, held in value.items())
                return f"{{{', '.join(rows)}}}"
            case list():
                return f"[{self._listed(value)}]"
            case tuple() if type(value) is tuple:
                return f"({self._listed(value)}{',' * (len(value) == 1)})"
        if dataclasses.is_dataclass(value) and not inspect.isclass(value):
            held = {one.name: getattr(value, one.name) for one in dataclasses.fields(value)}
            return self.call(self.named(type(value)), (), held)
        return self.named(value)

    def named(self, thing: Any) -> str:
        """Return the name of what is imported, or is the user's own."""
        found = origin(thing)
        self.need(*found.imports)
        return found.expression

    def call(self, function: str, given: Sequence[Any], named: Mapping[str, Any]) -> str:
        """Return a call of `function`."""
        placed = [self.value(one) for one in given]
        rest = [f"{name}={self.value(one)}" for name, one in named.items()]
        return f"{function}({', '.join([*placed, *rest])})"

    def construction(self, function: str, how: Construction, sizes: Sizes) -> str:
        """Return the call of the constructor `function` as `how` makes it at `sizes`."""
        named = {
            own: Expression(self.construction(self.named(one.value.make), one.value, sizes))
            if isinstance(one.value, Construction)
            else one.value(sizes)
            for own, one in how.fillings.items()
        }
        made = self.call(self.copy(function, how.constants, sizes), (), named)
        if how.batch:
            made = self.call(of_items.__name__, [Expression(made), *how.batch], {})
        if how.heads or how.outputs:
            of_heads = [Expression(made), how.heads, how.heads_axis, sizes.heads]
            more = {"outputs": how.outputs} if how.outputs else {}
            made = self.call(own_heads.__name__, of_heads, more)
        if not how.shared:
            return made
        times = 1 if how.has_one_layer else sizes.layers
        return self.call(own_layers.__name__, [Expression(made), how.shared, times], {})

    def copy(self, function: str, constants: Mapping[str, Filling], sizes: Sizes) -> str:
        """Return the copy of `function` whose `constants` are `sizes`; itself for none."""
        values = {own: one.value(sizes) for own, one in constants.items()}
        return self.call(copied.__name__, [Expression(function)], values) if values else function

    def _listed(self, values: Sequence[Any]) -> str:
        return ", ".join(self.value(one) for one in values)


def tensor(value: Tensor, *, grad: bool = False, device: str = "cpu") -> str:
    """Return an expression for a tensor of the same numbers, dtype and shape on `device`."""
    plain = value.numel() > 0 and value.dtype in (torch.bool, torch.int64)
    settings = [f"dtype={value.dtype}"] * (not plain)
    settings += ["requires_grad=True"] * grad
    settings += [f"device={device!r}"] * (device != "cpu")
    asked = "".join(f", {one}" for one in settings)
    flat = value.flatten()
    if value.numel() > FEW and value.is_contiguous() and bool((flat == flat[0]).all()):
        asked = f", dtype={value.dtype}" * plain + asked
        same = str(flat[0].item()).replace("inf", "torch.inf")
        return f"torch.full({tuple(value.shape)}, {same}{asked})"
    if not value.numel():
        return f"torch.zeros({tuple(value.shape)}{asked})"
    if value.is_contiguous() or 0 in value.stride():  # rows that are one row are written out
        return f"torch.tensor({numbers(to_array(value), 'torch')}{asked})"
    room = f"torch.empty_strided({tuple(value.shape)}, {value.stride()}, dtype={value.dtype})"
    filled = f"{room}.copy_({tensor(value.contiguous(), device=device)})"
    return filled + ".requires_grad_()" * grad
