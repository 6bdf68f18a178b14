"""Finds the layers of stacks, and the stacks and vocabularies of a whole model."""

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

from attentest.targets.adapt.parameters.behaviour import Run
from attentest.targets.adapt.parameters.layers import NO_LISTS, Lost, Part, feeding, layer_parts
from attentest.targets.adapt.parameters.leaves import matrix_tables, norm_entries
from attentest.targets.adapt.parameters.storage import Entries, as_place
from attentest.targets.adapt.parameters.units import Unit, squeezed
from attentest.targets.adapt.parameters.words import HEAD, SOURCE, TARGET, beyond, words
from attentest_spec import Sizes


@dataclass(frozen=True)
class Layers:
    """Like layers, numbered from 0: the text before the number, and the units of the first."""

    start: str
    units: tuple[Unit, ...]
    numbered: bool = True

    def holds(self, unit: Unit) -> bool:
        """Say whether `unit` belongs to one of the layers."""
        return _numbered(unit, self.start) if self.numbered else unit in self.units

    @property
    def first(self) -> str:
        """The text that the names of the first layer begin with."""
        return f"{self.start}0" if self.numbered else self.start

    def starred(self, canonical: str, table: Entries) -> Entries:
        """Return the table of the first layer, its number replaced by a star on both sides."""
        found: Entries = {}
        first = f"{canonical}layers.0"
        for name, entry in table.items():
            place = as_place(entry)
            if not name.startswith(first):
                found[name] = place
                continue
            rest = place.name.removeprefix(self.first)
            own = f"{self.start}*{rest}" if self.numbered else place.name
            found[f"{canonical}layers.*{name.removeprefix(first)}"] = replace(place, name=own)
        return found


def layer_lists(units: list[Unit], sizes: Sizes, wanted: int) -> list[Layers]:
    """Return the `wanted` outermost lists of like layers; Lost where there are fewer or more."""
    found = lists_of_layers(units, sizes)
    if not found and sizes.layers == 1:  # a stack of one layer may be the layer
        found = [Layers("", tuple(units), numbered=False)] if wanted == 1 else _single(units, sizes)
    if len(found) != wanted:
        there = ", ".join(f"{one.start}0" for one in found) or "none"
        lists = "a list of like layers" if wanted == 1 else f"{wanted} lists of like layers"
        such = f"{NO_LISTS}, such as layers.0 and layers.1"
        raise Lost(f"it should hold {lists} {such}, and there is {there}")
    return found


def _single(units: list[Unit], sizes: Sizes) -> list[Layers]:
    """Return the modules that are a layer each."""
    firsts = dict.fromkeys(unit.path.partition(".")[0] for unit in units)
    groups = {
        one: tuple(unit for unit in units if unit.path.startswith(f"{one}.")) for one in firsts
    }
    return [
        Layers(f"{one}.", group, numbered=False)
        for one, group in groups.items()
        if _is_layer(list(group), sizes)
    ]


def lists_of_layers(units: list[Unit], sizes: Sizes) -> list[Layers]:
    """Return the outermost lists of `sizes.layers` like layers that hold feed-forward matrices."""
    kinds: dict[str, dict[int, list[tuple[str, tuple[int, ...]]]]] = defaultdict(
        lambda: defaultdict(list)
    )
    for unit in units:
        for match in re.finditer(r"\d+", unit.path):
            shape = (unit.path[match.end() :], unit.shape)
            kinds[unit.path[: match.start()]][int(match[0])].append(shape)
    starts = [
        start
        for start, layers in kinds.items()
        if set(layers) == set(range(sizes.layers))
        and all(layer == layers[0] for layer in layers.values())
        and _is_layer([unit for unit in units if _numbered(unit, start, 0)], sizes)
    ]
    outer = [one for one in starts if not any(one != o and one.startswith(f"{o}0") for o in starts)]
    return [
        Layers(start, tuple(unit for unit in units if _numbered(unit, start, 0))) for start in outer
    ]


def _numbers(units: Sequence[Unit], sizes: Sizes) -> int:
    return sum(prod(unit.shape) * (sizes.heads if unit.per_head else 1) for unit in units)


def _numbered(unit: Unit, start: str, number: int | None = None) -> bool:
    match = re.match(r"\d+", unit.path[len(start) :]) if unit.path.startswith(start) else None
    return match is not None and number in (None, int(match[0]))


def _is_layer(units: list[Unit], sizes: Sizes) -> bool:
    fed = feeding(units, sizes)
    return len(fed) >= 2 and len([unit for unit in units if unit.kind != "norm"]) > len(fed)


def stack_parts(
    component: str, units: list[Unit], sizes: Sizes, run: Run
) -> tuple[list[Part], dict[str, Layers]]:
    """Return the parts of a stack of layers, and where its layers are."""
    layers = layer_lists(units, sizes, 1)[0]
    parts = layer_parts(f"{component}_layer", list(layers.units), sizes, run)
    found = [part.under("layers.0") for part in parts]
    norms = [unit for unit in units if unit.kind == "norm" and not layers.holds(unit)]
    if len(norms) == 1:
        found.append(Part("", "", [norm_entries("norm", norms[0])], norms))
    return found, {"": layers}


def model_parts(units: list[Unit], sizes: Sizes, run: Run) -> tuple[list[Part], dict[str, Layers]]:
    """Return the parts of a whole model, and where the layers of its two stacks are."""
    lists = layer_lists(units, sizes, 2)
    lists.sort(key=lambda one: _numbers(one.units, sizes))  # one attention or two
    rest = [u for u in units if not any(one.holds(u) for one in lists)]
    found: list[Part] = []
    for side, layers in zip(("encoder", "decoder"), lists, strict=True):
        parts = layer_parts(f"{side}_layer", list(layers.units), sizes, run)
        found += [part.under(f"{side}.layers.0") for part in parts]
    biases = lone_biases(rest, sizes)
    tables = _vocabularies([unit for unit in rest if unit.kind != "norm"], biases, sizes, run)
    norms = [unit for unit in rest if unit.kind == "norm" and unit not in biases]
    embedded = _embedding_norms(norms, tables, lists, run)
    found += embedded
    held = [unit for part in embedded for unit in part.units]
    found += _final_norms([unit for unit in norms if unit not in held], lists, run)
    return [*found, *tables], {"encoder.": lists[0], "decoder.": lists[1]}


def lone_biases(units: list[Unit], sizes: Sizes) -> list[Unit]:
    """Return the vectors alone with a number for each token of the target."""
    alone = [unit for unit in units if unit.kind == "norm" and not unit.bias]
    return [unit for unit in alone if squeezed(unit.shape) == (sizes.target_vocabulary,)]


def _embedding_norms(
    norms: list[Unit], tables: list[Part], lists: list[Layers], run: Run
) -> list[Part]:
    """Return the norms between a table and the stack of its side, where each side has one.

    They are called after the table of their side and before its first layer.
    """
    slots = ("source_embedding", "target_embedding")
    looked_up: list[int | None]
    looked_up = [run.when(part.units[0].path) for part in tables if part.slot in slots]
    known = [one for one in looked_up if one is not None]
    if len(known) == 1:  # one module with two names is called by one of them
        looked_up = [known[0] for _ in slots]
    entered = [run.when(one.first.rstrip(".")) for one in lists]
    found: list[Part] = []
    for slot, table, layer in zip(slots, looked_up, entered, strict=False):
        if table is None or layer is None:
            return []
        taken = [unit for part in found for unit in part.units]
        called = [unit for unit in norms if unit.path in run.order]  # else it is of a stack
        own = [unit for unit in called if table < (run.when(unit.path) or -1) < layer]
        between = [
            unit
            for unit in own
            if unit not in taken and not _belongs_elsewhere(unit, slot, looked_up, run)
        ]
        if len(between) == 2 and not taken and len(set(looked_up)) == 1:
            between = [_of_source(between, run)]  # both sides are looked up in one table
        if len(between) != 1:
            return []
        entries = norm_entries(f"{slot}_norm", between[0])
        found.append(Part("", "", [entries], between))
    return found


def _of_source(norms: list[Unit], run: Run) -> Unit:
    """Return which of two norms is that of the source: by name, or else the earlier one."""
    sides = _sides(norms)
    if set(sides) == {"source", "target"}:
        return norms[sides.index("source")]
    return min(norms, key=lambda unit: run.when(unit.path) or 0)


def _belongs_elsewhere(unit: Unit, slot: str, looked_up: Sequence[int | None], run: Run) -> bool:
    """Say whether a norm of one side comes after the table of the other: it is that side's."""
    source, target = looked_up
    time = run.when(unit.path) or 0
    if source is None or target is None or source == target:
        return False
    last = "target_embedding" if target > source else "source_embedding"
    return slot != last and time > max(source, target)


def _final_norms(norms: list[Unit], lists: list[Layers], run: Run) -> list[Part]:
    """Return the norms after the stacks, each beside its list, or in the order they are called.

    Where one of them alone is called as a module, the other has a place by its name.
    """
    if len(norms) != 2:
        return []
    times = [run.when(unit.path) for unit in norms]
    if sum(unit.path in run.order for unit in norms) == 1:
        times = [run.when(unit.path) if unit.path in run.order else None for unit in norms]
    sides = _sides(norms)
    if set(sides) != {"source", "target"}:
        beside = [unit.path.startswith(lists[0].start.rpartition(".")[0] or "?") for unit in norms]
        if beside.count(True) != 1 and None in times:
            return []
        known = [time or 0 for time in times]
        first = beside.index(True) if beside.count(True) == 1 else known.index(min(known))
        sides = ["source" if number == first else "target" for number in range(2)]
    entered = {"source": lists[0], "target": lists[1]}
    for side, called, unit in zip(sides, times, norms, strict=True):
        layer = run.when(entered[side].first.rstrip("."))
        if unit.path not in run.order:
            continue  # it is idle
        if called is not None and layer is not None and called < layer:
            return []  # what comes before the layers is no norm behind them
    return [
        Part(
            "",
            "",
            [norm_entries({"source": "encoder", "target": "decoder"}[side] + ".norm", unit)],
            [unit],
        )
        for side, unit in zip(sides, norms, strict=True)
    ]


def _sides(norms: list[Unit]) -> list[str]:
    """Return the sides of two norms by their names: where one has none, it is the other's."""
    sides = [_side(name) for name in beyond([unit.path for unit in norms])]
    if sides.count("") == 1:
        return [side or ("target" if "source" in sides else "source") for side in sides]
    return sides


def _side(name: str) -> str:
    spoken = set(words(name))
    if bool(spoken & SOURCE) == bool(spoken & TARGET):
        return ""
    return "source" if spoken & SOURCE else "target"


def _vocabularies(units: list[Unit], biases: list[Unit], sizes: Sizes, run: Run) -> list[Part]:
    """Return the embeddings, the learned positions and the generator, with a bias of its own."""
    tables = _of_rows(units, {sizes.source_vocabulary, sizes.target_vocabulary}, sizes)
    heads = [unit for unit in tables if _is_head(unit)]
    embeddings = [unit for unit in tables if unit not in heads]
    if len(embeddings) > 2:  # a table that both sides share may have a name of its own
        embeddings = [unit for unit in embeddings if unit.path in run.order]
    source, target = _two_sides(
        embeddings, (sizes.source_vocabulary, sizes.target_vocabulary), "embedding", run
    )
    generator = heads[-1] if heads else target
    found = [
        _matrix("source_embedding", source, sizes.source_vocabulary, sizes),
        _matrix("target_embedding", target, sizes.target_vocabulary, sizes),
        _generator(generator, biases, sizes),
    ]
    for offset in OFFSETS:
        rows = sizes.max_length + offset
        learned = [unit for unit in _of_rows(units, {rows}, sizes) if unit.weight in run.trained]
        if learned:
            sides = _two_sides(learned, (rows, rows), "position", run)
            found += [
                _matrix(f"{side}_positions", unit, rows, sizes)
                for side, unit in zip(("source", "target"), sides, strict=True)
            ]
            break
    return found


def _generator(unit: Unit, biases: list[Unit], sizes: Sizes) -> Part:
    """Return the generator; its bias may be a vector apart from its matrix, as a tied one has."""
    if unit.bias or len(biases) != 1:
        return _matrix("generator", unit, sizes.target_vocabulary, sizes)
    (bias,) = biases
    both = replace(unit, bias=bias.weight, bias_shape=bias.shape)
    return replace(_matrix("generator", both, sizes.target_vocabulary, sizes), units=[unit, bias])


OFFSETS = (0, 1, 2)
"""Rows before that of the first position, as tables of learned positions have them."""


def _of_rows(units: list[Unit], rows: set[int], sizes: Sizes) -> list[Unit]:
    shapes = [{length, sizes.d_model} for length in rows]
    return [unit for unit in units if set(squeezed(unit.shape)) in shapes]


def _is_head(unit: Unit) -> bool:
    spoken = set(words(unit.path.rpartition(".")[2])) | set(words(unit.path))
    return unit.kind == "linear" or bool(unit.kind == "matrix" and spoken & HEAD)


def _two_sides(units: list[Unit], rows: tuple[int, int], what: str, run: Run) -> tuple[Unit, Unit]:
    """Return the unit of the source and that of the target: by shape, by name, by time."""
    if not units or len(units) > 2:
        names = ", ".join(unit.path for unit in units) or "none"
        raise Lost(f"one {what} table for each side was looked for, and there is {names}")
    first, second = units[0], units[-1]
    if rows[0] != rows[1]:
        if rows[0] not in first.shape:
            first, second = second, first
        if rows[0] not in first.shape or rows[1] not in second.shape:
            raise Lost(f"{what} tables of {rows[0]} and of {rows[1]} rows were looked for")
        return first, second
    sides = [_side(name) for name in beyond([first.path, second.path])]
    times = [run.when(unit.path) or 0 for unit in (first, second)]
    late = (
        times[0] > times[1]
        if sides[0] == sides[1]
        else sides[0] == "target" or sides[1] == "source"
    )
    return (second, first) if late else (first, second)


def _matrix(slot: str, unit: Unit, rows: int, sizes: Sizes) -> Part:
    return Part(slot, "", matrix_tables("", unit, rows, sizes.d_model), [unit])
