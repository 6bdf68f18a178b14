"""The parameter map: from canonical names to a backend's own.

A table is flat and maps a canonical name, or the beginning of one, to the same in the backend:
`{"query": "linears.0"}` serves `query.weight` and `query.bias` alike. A `*` stands for the number
of a layer. A composite's table is composed from its parts' with :func:`nested`.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any, TypeVar

from einops import rearrange

T = TypeVar("T")


@dataclass(frozen=True)
class Place:
    """Place of a canonical parameter in a backend.

    `name` is the backend's own name; a `*` in it that stands for no layer stands for every head,
    and the canonical rows are those of the heads, one after the other. `part` = (k, n) means the
    k-th of n equal slices along the first axis of a packed parameter. `transpose` says that the
    backend stores it as (in, out). `layout` says how it is stored where that is neither, in the
    notation of einops, from the backend's axes to the canonical ones: `h` is the number of heads,
    `g` that of keys and values, `r` that of query heads for each of these, and `n` that of packed
    parameters, as in "(h n e) d -> (n h e) d" or "h d e -> (h e) d". `plus` is what the backend
    adds to the stored numbers before it uses them: 1 where it stores a gain minus 1. `span`
    ("query", "key" or "value") means those rows of a parameter that holds all three one after the
    other, of which keys and values may have fewer heads than queries.
    """

    name: str
    part: tuple[int, int] | None = None
    transpose: bool = False
    layout: str = ""
    plus: float = 0.0
    span: str = ""

    @property
    def stored(self) -> str:
        """The backend's name of the parameter, without a number in brackets."""
        return self.name.partition("[")[0]

    @cached_property
    def _whole(self) -> bool:
        """Whether it is one parameter of the backend, unchanged, as most are."""
        return self == Place(self.name) and not set(self.name) & set("*[")

    def names(self, known: Iterable[str]) -> list[str]:
        """Return the names this stands for: its own, or those of `known` it is the pattern of."""
        if "*" not in self.name:
            return [self.stored]
        pattern = re.compile(re.escape(self.name).replace(r"\*", r"(\d+)"))
        found = [match for one in known if (match := pattern.fullmatch(one))]
        return [one[0] for one in sorted(found, key=lambda one: [int(n) for n in one.groups()])]

    def view(self, stored: Any, heads: int = 1, key_heads: int = 0) -> Any:
        """Return the writable view of `stored` that holds the parameter minus `plus`.

        Its numbers lie in the canonical order; a layout may leave more axes than the canonical
        parameter has, because merged ones are no view.
        """
        source, _, target = self.layout.partition("->")
        return self._slice(stored, f"{source}->{re.sub('[()]', '', target)}", heads, key_heads)

    def read(self, own: Mapping[str, Any], heads: int = 1, key_heads: int = 0) -> Any:
        """Return the canonical parameter from the backend's `own` arrays or tensors by name."""
        if self._whole:
            return own[self.name]
        names = self.names(own)
        pieces = [self._slice(own[name], self.layout, heads, key_heads) for name in names]
        joined = rearrange(pieces, "h e ... -> (h e) ...") if len(pieces) > 1 else pieces[0]
        return joined + self.plus if self.plus else joined

    def gradient(self, own: Mapping[str, Any], heads: int = 1, key_heads: int = 0) -> Any:
        """Return the gradient of the canonical parameter from those of the backend's `own`."""
        return replace(self, plus=0.0).read(own, heads, key_heads)

    def write(
        self, own: Mapping[str, Any], values: Any, heads: int = 1, key_heads: int = 0
    ) -> None:
        """Write the canonical `values` into the backend's `own` arrays or tensors."""
        if self._whole:
            stored = own[self.name]
            stored[...] = values if values.shape == stored.shape else values.reshape(stored.shape)
            return
        views = [self.view(own[name], heads, key_heads) for name in self.names(own)]
        rows = len(values) // len(views)
        for number, view in enumerate(views):
            stored = values[number * rows : (number + 1) * rows]
            view[...] = (stored - self.plus if self.plus else stored).reshape(view.shape)

    def _slice(self, stored: Any, layout: str, heads: int, key_heads: int) -> Any:
        _, stacked, number = self.name.partition("[")
        if stacked:
            stored = stored[int(number.removesuffix("]"))]
        turned = stored.swapaxes(-1, -2) if self.transpose else stored
        index, count = self.part or (0, 1)
        if self.layout:
            shared = key_heads or heads
            sizes = {"h": heads, "n": count, "g": shared, "r": heads // shared}
            named = {axis: sizes[axis] for axis in sizes if axis in re.findall(r"\w+", self.layout)}
            turned = rearrange(turned, layout, **named)
        if self.span:
            return turned[_rows_of(self.span, len(turned), heads, key_heads or heads)]
        if self.part is None:
            return turned
        rows = turned.shape[0] // count
        return turned[index * rows : (index + 1) * rows]


def _rows_of(span: str, rows: int, heads: int, key_heads: int) -> slice:
    """Return the rows of query, key or value among `rows` that hold the three in this order."""
    width = rows // (heads + 2 * key_heads)
    start = {"query": 0, "key": heads, "value": heads + key_heads}[span]
    return slice(start * width, (start + (heads if span == "query" else key_heads)) * width)


Table = Mapping[str, str | Place]


def nested(canonical: str, own: str, table: Table) -> dict[str, str | Place]:
    """Return `table` moved under `canonical` on the spec's side and `own` on the backend's.

    An empty `own` leaves the backend's names as they are.
    """
    return {
        _join(canonical, name): replace(_place(entry), name=_join(own, _place(entry).name))
        for name, entry in table.items()
    }


def locate(name: str, table: Table) -> Place:
    """Return the place of the canonical parameter `name`.

    Raises KeyError when the table has no entry that `name` begins with.
    """
    for key, numbers, rest in _beginnings(name):
        if key in table:
            return _within(_place(table[key]), numbers, rest)
    raise KeyError(f"The parameter map has no entry for {name!r}.")


@lru_cache(2**12)
def _beginnings(name: str) -> tuple[tuple[str, tuple[str, ...], str], ...]:
    """Return what an entry for `name` may be called, the longest first.

    With each come the numbers that stand where it has stars, and the rest of `name`.
    """
    segments = name.split(".")
    found = []
    for length in range(len(segments), 0, -1):
        start, rest = segments[:length], ".".join(segments[length:])
        numbers = tuple(segment for segment in start if segment.isdigit())
        starred = ["*" if segment.isdigit() else segment for segment in start]
        found += [(".".join(start), (), rest), (".".join(starred), numbers, rest)]
    return tuple(found)


@lru_cache(2**12)
def _within(place: Place, numbers: tuple[str, ...], rest: str) -> Place:
    """Return the place called `rest` within `place`, of the layers with these `numbers`."""
    return replace(place, name=_join(_fill(place.name, numbers), rest))


def require_mapped(own: Mapping[str, T], name: str, place: Place, holder: str) -> Mapping[str, T]:
    """Return the `own` parameters of `holder` where they include the one that `name` maps to.

    Raises ValueError, with what there is, where they do not.
    """
    if place.stored not in own and not any(one in own for one in place.names(own)):
        raise ValueError(
            f"The parameter map sends {name} to {place.name}, which the {holder} does not have; "
            f"it has: {', '.join(sorted(own)) or 'none'}."
        )
    return own


def check_names(known: Iterable[str], given: Iterable[str]) -> None:
    """Raise ValueError, with the missing and the extra names, where `given` is not `known`."""
    missing, extra = sorted(set(known) - set(given)), sorted(set(given) - set(known))
    if missing or extra:
        raise ValueError(f"Cannot load: missing {missing or 'none'}, extra {extra or 'none'}.")


def check_shape(name: str, shape: tuple[int, ...], own: str, room: tuple[int, ...]) -> None:
    """Raise ValueError where `name` has another shape than `room`, that of the backend's `own`."""
    if shape != room:
        raise ValueError(
            f"Cannot load {name}: its shape is {shape}, and {own} has room for {room}."
        )


def _place(entry: str | Place) -> Place:
    return entry if isinstance(entry, Place) else Place(entry)


def _join(*names: str) -> str:
    return ".".join(name for name in names if name)


def _fill(own: str, numbers: Iterable[str]) -> str:
    for number in numbers:
        own = own.replace("*", number, 1)
    return own
