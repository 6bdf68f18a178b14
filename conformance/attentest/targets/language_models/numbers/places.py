"""Views of parameters as matrices and rows: the places that a canonical parameter may have."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import nn

from attentest_spec import Place, Sizes
from attentest_spec.setting import Floats


@dataclass(frozen=True, eq=False)
class View:
    """A parameter, or a part of it: its place, and its numbers in the canonical shape."""

    place: Place
    values: Floats

    @property
    def name(self) -> str:
        """The backend's own name."""
        return self.place.name


class Parameters:
    """The parameters of a module, to be read as what the formulas need."""

    def __init__(self, module: nn.Module, sizes: Sizes) -> None:
        """Copy those of `module`, which was built at `sizes`."""
        self.own: dict[str, Floats] = {}
        seen: dict[tuple[int, ...], str] = {}
        self.same: dict[str, str] = {}
        for name, one in module.named_parameters(remove_duplicate=False):
            key = (one.data_ptr(), *one.shape)
            self.same[name] = seen.setdefault(key, name)
            self.own[name] = one.detach().numpy().copy()
        self.sizes = sizes

    def matrices(self, rows: int, columns: int) -> Iterator[View]:
        """Yield the views of shape (rows, columns): whole, turned, and parts of packed ones."""
        for place in self._candidates():
            yield from self._views(place, rows, columns)

    def rows(self, size: int) -> Iterator[View]:
        """Yield the views of shape (size,): whole ones, and parts of packed ones."""
        for place in self._candidates():
            yield from self._views(place, size, 0)

    def tables(self, columns: int) -> Iterator[View]:
        """Yield the views with rows of `columns` numbers, leading axes of one left out."""
        for name in self._names():
            shape = self.own[name].shape
            if len(shape) >= 2 and shape[-1] == columns and set(shape[:-2]) <= {1}:
                ones = " ".join("abc"[: len(shape) - 2])
                layout = f"{ones} l d -> ({ones} l) d" if ones else ""
                yield self._read(Place(name, layout=layout))

    @cached_property
    def have_heads(self) -> bool:
        """Whether some of them are those of one head each."""
        return any(self._of_heads())

    def _names(self) -> list[str]:
        return [name for name, first in self.same.items() if name == first]

    def _candidates(self) -> Iterator[str]:
        """Yield the names of single parameters, then patterns of those that heads have."""
        yield from self._names()
        yield from self._of_heads()

    def _of_heads(self) -> Iterator[str]:
        """Yield names with a star for the number of a head, where there are as many as heads."""
        found: dict[str, int] = {}
        for name in self._names():
            parts = name.split(".")
            for at, part in enumerate(parts):
                if part.isdigit():
                    pattern = ".".join([*parts[:at], "*", *parts[at + 1 :]])
                    found[pattern] = found.get(pattern, 0) + 1
        wanted = {self.sizes.heads, self.sizes.kv_heads} - {self.sizes.layers}
        yield from (pattern for pattern, count in found.items() if count in wanted)

    def _views(self, name: str, rows: int, columns: int) -> Iterator[View]:
        wanted = (rows, columns) if columns else (rows,)
        own = Place(name).names(self.own)
        axes = self.own[own[0]].ndim
        for place in _forms(name, axes, matrix=bool(columns)):
            try:
                view = self._read(place)
            except (ValueError, RuntimeError, IndexError, TypeError, ZeroDivisionError):
                continue
            if view.values.shape == wanted and len(view.values):
                yield view

    def _read(self, place: Place) -> View:
        own: Mapping[str, torch.Tensor] = {
            name: torch.from_numpy(self.own[name]) for name in place.names(self.own)
        }
        values = place.read(own, self.sizes.heads, self.sizes.kv_heads)
        return View(place, np.ascontiguousarray(values.numpy()))


def _forms(name: str, axes: int, *, matrix: bool) -> Iterator[Place]:
    """Yield the ways in which a parameter with so many axes may be stored, the plainest first."""
    if axes > 1 + matrix:
        yield from _of_more_axes(name, axes, matrix=matrix)
        return
    tail = " d" if matrix else ""
    for transpose in (False, True) if matrix else (False,):
        yield Place(name, transpose=transpose)
        for count in (2, 3):
            for part in range(count):
                yield Place(name, (part, count), transpose=transpose)
        for span in ("query", "key", "value"):
            yield Place(name, transpose=transpose, span=span)
        for count, heads in ((3, "h"), (2, "g")):
            layout = f"({heads} n e){tail} -> (n {heads} e){tail}"
            for part in range(count):
                yield Place(name, (part, count), transpose=transpose, layout=layout)


def _of_more_axes(name: str, axes: int, *, matrix: bool) -> Iterator[Place]:
    """Yield the ways to store a matrix, or a row, with axes of heads and of packed parameters."""
    rows = ["h e", "g e"] if axes == 2 + matrix else []
    packed = "n e" if rows else "n h e" if axes == 3 + matrix else ""
    inputs = ("{} d", "d {}") if matrix else ("{}",)
    for order in inputs:
        for axis in rows:
            yield Place(name, layout=f"{order.format(axis)} -> {_joined(axis, matrix=matrix)}")
        for count in (3, 2) if packed else ():
            for part in range(count):
                layout = f"{order.format(packed)} -> {_joined(packed, matrix=matrix)}"
                yield Place(name, (part, count), layout=layout)
    if matrix and rows:
        yield Place(name, layout="h d e -> (h e) d")
        yield Place(name, layout="g d e -> (g e) d")
        yield Place(name, layout="h e d -> d (h e)")


def _joined(axes: str, *, matrix: bool) -> str:
    return f"({axes})" + " d" * matrix


def matching(weight: View, bias: View) -> bool:
    """Say whether `bias` is stored in the same part of its parameter as `weight`."""
    one, other = weight.place, bias.place
    interleaved = [place.layout.startswith(("(h n", "(g n")) for place in (one, other)]
    return (one.part, one.span, interleaved[0]) == (other.part, other.span, interleaved[1])
