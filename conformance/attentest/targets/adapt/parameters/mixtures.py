"""The tables of a mixture of experts: router, experts in a list or in arrays, a shared expert."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import product

from attentest.targets.adapt.parameters.layers import Lost, Part
from attentest.targets.adapt.parameters.leaves import leaf_tables
from attentest.targets.adapt.parameters.storage import Entries, as_place, ways
from attentest.targets.adapt.parameters.units import Unit, squeezed
from attentest_spec import Place, Sizes

_NUMBER = re.compile(r"(?<=\.)\d+(?=\.)")

MOST = 64
"""The largest number of tables that are tried."""

_MAPS = (2, 3)
"""The numbers of linear maps of an expert: it may have a gate."""


def mixture_part(units: list[Unit], sizes: Sizes) -> Part:
    """Return the part that is a mixture of experts; Lost where no table fits."""
    routers = [unit for unit in units if _is_router(unit, sizes)]
    lists = _in_lists(units, sizes)
    stacked = [unit for unit in units if _is_stacked(unit, sizes)]
    several = lists or [[_one_of(unit) for unit in stacked]] if (lists or stacked) else []
    experts = [table for first in several for table in _experts(first, sizes)]
    if not routers or not experts:
        held = ", ".join(f"{unit.weight} {unit.shape}" for unit in units) or "nothing"
        what = "router" if not routers else "experts"
        raise Lost(f"no {what} of a mixture of experts can be made out of {held}")
    listed = tuple(_start(unit) for first in lists for unit in first)
    own = {
        name
        for unit in units
        for name in unit.names
        if unit in routers or unit in stacked or (listed and name.startswith(listed))
    }
    rest = [unit for unit in units if not own.intersection(unit.names)]
    tables = [
        {**router, **_bias(unit, units, sizes), **expert, **shared, **_shared_gate(rest, sizes)}
        for unit in routers
        for router, expert, shared in product(_router(unit, sizes), experts, _shared(rest, sizes))
    ]
    return Part("", "mixture_of_experts", tables[:MOST], units)


def _is_router(unit: Unit, sizes: Sizes) -> bool:
    """Say whether a matrix has a row, or a column, for each expert and for each feature."""
    return sorted(squeezed(unit.shape)) == sorted((sizes.experts, sizes.d_model)) and (
        unit.kind != "norm"
    )


def _router(unit: Unit, sizes: Sizes) -> Iterator[Entries]:
    for stored in ways(unit, {"m": sizes.experts}, {"d": sizes.d_model}):
        yield stored.entries("router", unit)


def _bias(router: Unit, units: list[Unit], sizes: Sizes) -> Entries:
    """Return the place of a vector with a number for each expert, where the router has no bias."""
    vectors = [unit.weight for unit in units if squeezed(unit.shape) == (sizes.experts,)]
    return {"router.bias": vectors[0]} if len(vectors) == 1 and not router.bias else {}


def _in_lists(units: list[Unit], sizes: Sizes) -> list[list[Unit]]:
    """Return the units of the first of M experts in each list of M modules of equal shapes.

    Where each list holds one map of every expert, the lists together are those of the experts.
    """
    found: dict[str, dict[int, list[Unit]]] = {}
    for unit in units:
        match = _NUMBER.search(f"{unit.path}.")
        if match:
            found.setdefault(_start(unit), {}).setdefault(int(match[0]), []).append(unit)
    first = [
        held[0]
        for held in found.values()
        if sorted(held) == list(range(sizes.experts))
        and all(_shapes(one) == _shapes(held[0]) for one in held.values())
    ]
    maps = [one[0] for one in first if len(one) == 1]
    return [one for one in first if len(one) > 1] or [maps] * (len(maps) in _MAPS)


def _start(unit: Unit) -> str:
    """Return the path of the list that a unit is in, with the dot behind it."""
    match = _NUMBER.search(f"{unit.path}.")
    return unit.path[: match.start()] if match else f"{unit.path}."


def _shapes(units: list[Unit]) -> list[tuple[int, ...]]:
    return [unit.shape for unit in units]


def _is_stacked(unit: Unit, sizes: Sizes) -> bool:
    return len(unit.shape) == 3 and unit.shape[0] == sizes.experts


def _one_of(unit: Unit) -> Unit:
    """Return the unit of the first of stacked experts."""
    return replace(
        unit,
        path=f"{unit.path}[0]",
        kind="matrix",
        weight=f"{unit.weight}[0]",
        bias=f"{unit.bias}[0]" if unit.bias else "",
        shape=unit.shape[1:],
        bias_shape=unit.bias_shape[1:],
    )


def _experts(first: list[Unit], sizes: Sizes) -> Iterator[Entries]:
    """Yield the tables of all experts, from those of the first one."""
    for table in leaf_tables("feed_forward", first, sizes):
        yield {f"experts.*.{name}": _starred(entry) for name, entry in table.items()}


def _starred(entry: str | Place) -> Place:
    """Return the place of every expert's parameter, from that of the first one."""
    place = as_place(entry)
    name = re.sub(r"\[0\]$", "[*]", place.name)
    if name == place.name:
        name = re.sub(r"(^|\.)0(\.|$)", r"\1*\2", place.name, count=1)
    return replace(place, name=name)


def _shared(rest: list[Unit], sizes: Sizes) -> list[Entries]:
    """Return the tables of a shared expert, or one that is empty where there is none."""
    wide = [unit for unit in rest if len(squeezed(unit.shape)) > 1]
    tables = leaf_tables("feed_forward", wide, sizes) if len(wide) in (2, 3) else []
    return [
        {f"shared_expert.{name}": entry for name, entry in table.items()} for table in tables
    ] or [{}]


def _shared_gate(rest: list[Unit], sizes: Sizes) -> Mapping[str, str]:
    """Return the place of the gate of a shared expert: one row of the width of the model."""
    rows = [unit.weight for unit in rest if unit.shape == (1, sizes.d_model)]
    return {"shared_gate.weight": rows[0]} if len(rows) == 1 else {}
