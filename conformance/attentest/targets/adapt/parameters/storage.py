"""The ways in which a weight of known axes can be stored, and the places that say so."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, permutations
from math import prod

from attentest.targets.adapt.parameters.units import Shape, Unit, squeezed
from attentest_spec.mapping import Place

Axes = Mapping[str, int]
"""Axes by the letter they have in a layout: h heads, e head width, d model width, n packed."""

Entries = dict[str, str | Place]

SLICES, INTERLEAVED = ("h", "e"), ("e", "h")
"""The axes of a width in its order: heads are slices of it, or channel c is of head c mod h."""


@dataclass(frozen=True)
class Stored:
    """One way to read a unit: how its weight and its bias are laid out."""

    weight: Place
    bias: Place | None

    def entries(self, slot: str, unit: Unit, part: tuple[int, int] | None = None) -> Entries:
        """Return the lines of a table that map the parameters of `slot` to `unit`."""
        weight = replace(self.weight, part=part)
        bias = self.bias and replace(self.bias, part=part)
        usual = weight.name == f"{unit.path}.weight" and (
            not bias or bias.name == f"{unit.path}.bias"
        )
        if slot and usual and bias in (None, replace(weight, name=f"{unit.path}.bias")):
            return {slot: simple(replace(weight, name=unit.path))}
        start = f"{slot}." if slot else ""
        found = {f"{start}weight": simple(weight)}
        return found | ({f"{start}bias": simple(bias)} if bias else {})


def as_place(entry: str | Place) -> Place:
    """Return an entry of a table in its long form."""
    return entry if isinstance(entry, Place) else Place(entry)


def simple(place: Place) -> str | Place:
    """Return the name alone where the place says nothing else."""
    return place.name if place == Place(place.name) else place


def agrees(table: Mapping[str, str | Place], start: str, own: str) -> bool:
    """Say whether what `table` has for canonical names that begin with `start` lies in `own`."""
    held = [
        as_place(entry).name for name, entry in table.items() if f"{name}.".startswith(f"{start}.")
    ]
    return bool(held) and all(f"{name}.".startswith(f"{own}.") for name in held)


def with_given(table: Entries, given: Mapping[str, str]) -> Entries:
    """Return `table` with the entries that a user gives in the place of others."""
    for start, own in given.items():
        if not agrees(table, start, own):
            rest = {
                name: entry
                for name, entry in table.items()
                if not f"{name}.".startswith(f"{start}.")
            }
            table = {**rest, start: own}
    return table


def with_fewer_key_heads(table: Mapping[str, str | Place]) -> Entries:
    """Return `table` with packed projections that may have fewer heads of keys and values.

    It was found with as many: three equal parts are the three spans, in the usual order, and heads
    that are an axis of keys and values alone are theirs.
    """
    spans = {(0, 3): "query", (1, 3): "key", (2, 3): "value"}
    found: Entries = {}
    for name, entry in table.items():
        place, role = as_place(entry), name.split(".")[0]
        span = spans.get(place.part or (0, 0), "")
        if span and role == span and not place.layout:
            found[name] = replace(place, part=None, span=span)
        elif role in ("key", "value") and not span and place.layout:
            found[name] = replace(place, layout=re.sub(r"\bh\b", "g", place.layout))
        else:
            found[name] = entry
    return found


def ways(unit: Unit, rows: Axes, columns: Axes, *, heads: Sequence[str] = SLICES) -> list[Stored]:
    """Return the ways in which `unit` can hold a weight of `rows` by `columns`, usual ones first.

    An nn.Linear is known to be stored as (out, in); for anything else both orders are tried, and
    x @ W, the commoner of the two, comes first. `heads` is :data:`SLICES` or :data:`INTERLEAVED`.
    """
    oriented = unit.kind in ("linear", "packed", "table")
    lefts = sorted(
        set(_lefts(squeezed(unit.shape), rows, columns, heads, oriented=oriented)),
        key=lambda left: (_order(left, rows) != list(rows), left[-1][0] in columns, left),
    )
    found = []
    for left in lefts:
        bias = _bias(unit, rows, _order(left, rows), heads)
        if bias is not None or not unit.bias:
            sides = (rows, columns) if columns else (rows,)
            found.append(Stored(_place(unit.weight, unit.shape, left, sides), bias))
    return found


Left = tuple[tuple[str, ...], ...]


def _lefts(
    shape: Shape, rows: Axes, columns: Axes, heads: Sequence[str], *, oriented: bool
) -> Iterator[Left]:
    """Yield every grouping of the axes, in any order, that has the lengths of `shape`."""
    sizes = {**rows, **columns}
    if not 0 < len(shape) <= len(sizes):
        return
    for order in permutations(sizes):
        for cuts in combinations(range(1, len(order)), len(shape) - 1):
            left = tuple(
                order[start:end] for start, end in zip((0, *cuts), (*cuts, None), strict=True)
            )
            lengths = tuple(prod(sizes[axis] for axis in group) for group in left)
            if lengths != shape or not all(_sound(group, columns, heads) for group in left):
                continue
            if not oriented or (set(left[-1]) == set(columns) and len(shape) == 2):
                yield left


def _sound(group: Sequence[str], columns: Axes, heads: Sequence[str]) -> bool:
    """Say whether axes may be one: rows with rows, and `heads` in their order."""
    mixed = len({axis in columns for axis in group}) > 1
    order = [axis for axis in group if axis in heads]
    return not mixed and order == [axis for axis in heads if axis in group]


def _order(left: Left, rows: Axes) -> list[str]:
    return [axis for group in left for axis in group if axis in rows]


def _bias(unit: Unit, rows: Axes, order: list[str], heads: Sequence[str]) -> Place | None:
    """Return the place of the bias, its axes in the order that those of the weight have."""
    shape = squeezed(unit.bias_shape)
    if not unit.bias or (shape == () and prod(rows.values()) != 1):
        return None
    lefts = list(_lefts(shape, rows, {}, heads, oriented=False))
    same = [left for left in lefts if _order(left, rows) == order] or lefts
    return _place(unit.bias, unit.bias_shape, same[0], (rows,)) if same else None


def _place(name: str, shape: Shape, left: Left, sides: Sequence[Axes]) -> Place:
    right = tuple(tuple(side) for side in sides)
    if len(shape) == len(left) == len(right):
        if left == right:
            return Place(name)
        if left == right[::-1]:
            return Place(name, transpose=True)
    groups = iter(left)
    written = ["1" if length == 1 else _written(next(groups)) for length in shape]
    return Place(name, layout=f"{' '.join(written)} -> {' '.join(map(_written, right))}")


def _written(group: Sequence[str]) -> str:
    return group[0] if len(group) == 1 else f"({' '.join(group)})"
