"""The forms in which rotary positions are called: how tables are made, and how x is turned."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from attentest.targets.adapt.rotary.signatures import Arguments, built_with
from attentest_spec import Sizes

LAYOUTS = {
    "heads-first": "x (B, H, T, D)",
    "tokens-first": "x (B, T, H, D)",
    "sequence-first": "x (T, B, H, D)",
}
"""The layouts of queries and keys, in words."""

_ORDERS = {
    "heads-first": (0, 1, 2, 3),
    "tokens-first": (0, 2, 1, 3),
    "sequence-first": (2, 0, 1, 3),
}
"""The axes of (B, H, T, D) in the order of each layout."""

STYLES = {
    "batch": ("none", "offset", "shared", "per-sample"),
    "row": ("none", "offset", "shared"),
    "offset": ("none", "offset"),
    "offset-array": ("none", "offset"),
    "rows": ("none", "offset", "shared"),
    "length": ("none",),
    "": ("none",),
}
"""The forms in which positions are given, and the kinds that are served.

As an array for every sequence, as one array, as a number, as a number for every sequence, by the
rows of the table, as the length of the sequence, or not at all.
"""


@dataclass(frozen=True)
class Maker:
    """Code that makes tables, or turns x itself: a class that is built, or a function.

    `made` are the arguments of the constructor, None for a function; `called` those of the call,
    which is the method `method` of what is built.
    """

    thing: Any
    made: Arguments | None
    called: Arguments
    method: str = ""

    def built(self, sizes: Sizes) -> Any:
        """Return what is called at `sizes`."""
        return self.thing if self.made is None else self.thing(**built_with(self.made, sizes))

    def bases(self, sizes: Sizes) -> list[float]:
        """Return the bases that are defaults of its arguments, or fields of its settings."""
        found = [one.base for one in (self.made, self.called) if one is not None]
        settings = self.made.settings if self.made is not None else None
        return [*(one for one in found if one), *(settings.bases(sizes) if settings else ())]


class Held(nn.Module):
    """A module that a user wrote, and the sizes that it was built at.

    With `single_tables` its real buffers, and parameters that are not trained, are never cast to
    less than float32.
    """

    def __init__(self, thing: nn.Module, sizes: Sizes, *, single_tables: bool = False) -> None:
        super().__init__()
        self.thing, self.sizes, self.single_tables = thing, sizes, single_tables

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> "Held":
        def cast(tensor: Tensor) -> Tensor:
            found = fn(tensor)
            is_table = found.is_floating_point() and not tensor.requires_grad
            if is_table and self.single_tables and found.element_size() < 4:  # bytes of a float32
                return tensor.to(found.device, torch.float32)
            return found

        super()._apply(cast, recurse)  # type: ignore[no-untyped-call]  # torch leaves it untyped
        return self


@dataclass(frozen=True)
class HeldPlain:
    """A function or an object that a user wrote, and the sizes that it was built at."""

    thing: Any
    sizes: Sizes


@dataclass(frozen=True)
class Form:
    """One way to call rotary positions.

    `apply` turns x with the tables, None where the maker does; `applied` are its arguments.
    `layout` is one of :data:`LAYOUTS`, `style` one of :data:`STYLES`. With `single_tables` the
    fixed arrays of a module stay in float32 where it is cast to half precision. `alone` is the
    number of the result that is looked at where queries and keys are turned together, None for
    both.
    """

    maker: Maker
    apply: Callable[..., Any] | None
    applied: Arguments | None
    layout: str
    style: str
    single_tables: bool = False
    alone: int | None = None

    def build(self, sizes: Sizes) -> Held | HeldPlain:
        """Return what is called, built at `sizes`."""
        made = self.maker.built(sizes)
        if isinstance(made, nn.Module):
            return Held(made, sizes, single_tables=self.single_tables)
        return HeldPlain(made, sizes)

    def __call__(
        self, built: Held | HeldPlain, x: Tensor, positions: Tensor | None = None
    ) -> Tensor:
        """Return x (B, H, L, E) turned; the mean of queries and keys, which both are x."""
        order = _ORDERS[self.layout]
        # Code that views pairs as complex numbers needs the memory of its own layout.
        given = x.permute(order).contiguous()
        result = self._turned(built, given, positions)
        found = [one for one in result if isinstance(one, Tensor)][:2]
        if self.alone is not None:
            turned = found[self.alone]
        else:
            turned = found[0] if len(found) == 1 else (found[0] + found[1]) / 2
        return turned.permute(*(order.index(axis) for axis in range(4)))

    def _turned(
        self, built: Held | HeldPlain, x: Tensor, positions: Tensor | None
    ) -> tuple[Any, ...]:
        places = self._places(x, positions)
        if self.apply is None or self.applied is None:
            result = self._call(built, x, places)
            return result if isinstance(result, tuple) else (result,)
        tables, scale = without_scale(self._rows_of(built, x, places))
        named = self._carried(self.applied, x, places)
        if len(tables) == 2:
            # One argument may carry both tables.
            both = {"cosines": tables[0], "sines": tables[1], "table": tables}
            named |= {role: one for role, one in both.items() if role in self.applied.roles}
        else:
            named["table"] = tables[0]
        scaled = {"scale": scale} if scale is not None and "scale" in self.applied.defaults else {}
        result = self.apply(**scaled, **self.applied.given(**named))
        return result if isinstance(result, tuple) else (result,)

    def _places(self, x: Tensor, positions: Tensor | None) -> Tensor:
        """Return the positions (B, L) that are meant."""
        batch, length = (x.shape[_ORDERS[self.layout].index(axis)] for axis in (0, 2))
        if positions is not None:
            return positions
        return torch.arange(length, device=x.device).expand(batch, length)

    def _call(self, built: Held | HeldPlain, x: Tensor, places: Tensor) -> Any:
        call = getattr(built.thing, self.maker.method) if self.maker.method else built.thing
        sizes = built_with(self.maker.called, built.sizes) if self.maker.made is None else {}
        named = self._carried(self.maker.called, x, places)
        if "length" in self.maker.called.roles and self.style == "length":
            named["length"] = places.shape[1]
        return call(**{**sizes, **self.maker.called.given(**named)})

    def _carried(self, arguments: Arguments, x: Tensor, places: Tensor) -> dict[str, Any]:
        """Return the tensors that the arguments carry, by their roles."""
        named: dict[str, Any] = {"x": x, "key": x.clone(), "device": x.device}
        if self.style == "batch":
            named["positions"] = places.contiguous()
        elif self.style == "row":
            named["positions"] = places[0].contiguous()
        elif self.style == "offset":
            number = 0 if places.device.type == "meta" else int(places[0, 0])
            named |= {"offset": number, "positions": number}
        elif self.style == "offset-array":
            named["offset"] = places[:, 0].contiguous()
        return {role: one for role, one in named.items() if role in arguments.roles}

    def tables(self, built: Held | HeldPlain, x: Tensor) -> tuple[Any, ...]:
        """Return the tables that turn x (B, H, L, E); none where code turns x itself."""
        if self.apply is None:
            return ()
        given = x.permute(_ORDERS[self.layout])
        return self._rows_of(built, given, self._places(given, None))

    def _rows_of(self, built: Held | HeldPlain, x: Tensor, places: Tensor) -> tuple[Any, ...]:
        """Return the tables: two, or one of complex numbers or angles; the rows of the tokens."""
        made = self._call(built, x, places)
        tables = tuple(made) if isinstance(made, tuple | list) else (made,)
        if self.style != "rows":
            return tables
        rows = places[0]
        return tuple(
            _rows(one, rows, built.sizes.max_length) if is_table(one) else one for one in tables
        )


def is_table(value: Any) -> bool:
    """Say whether `value` is an array of rows for positions, and no single number."""
    return isinstance(value, Tensor) and value.numel() > 1


def without_scale(made: tuple[Any, ...]) -> tuple[tuple[Any, ...], Any]:
    """Return the tables alone, and the one number that came behind them, None where none did.

    Angles are handed out together with the factor of the cosines and sines that they give.
    """
    if len(made) == 2 and is_table(made[0]) and not is_table(made[1]):
        return made[:1], made[1]
    return made, None


def _rows(table: Tensor, rows: Tensor, length: int) -> Tensor:
    """Return the `rows` of a table, along the axis that has `length` of them or more."""
    axis = next((n for n, size in enumerate(table.shape[:-1]) if size >= length), 0)
    return table.index_select(axis, rows.to(table.device))


def is_method(thing: Any, name: str) -> bool:
    """Say whether a class defines the method `name` itself, or inherits it from one of a user."""
    found = inspect.getattr_static(thing, name, None)
    return callable(found) and getattr(found, "__module__", "") not in ("torch.nn.modules.module",)
