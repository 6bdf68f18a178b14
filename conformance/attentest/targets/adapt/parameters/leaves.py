"""The tables that shapes and names allow for a component without parts, the usual one first."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice, permutations, product

from attentest.targets.adapt.parameters.storage import (
    INTERLEAVED,
    SLICES,
    Axes,
    Entries,
    Stored,
    ways,
)
from attentest.targets.adapt.parameters.units import Unit, squeezed
from attentest.targets.adapt.parameters.words import (
    beyond,
    feed_forward_role,
    norm_of_heads,
    projections,
    says_sink,
)
from attentest_spec import Sizes
from attentest_spec.mapping import Place

PROJECTIONS = ("query", "key", "value", "output")

_PACKINGS = (
    (("query",), ("key",), ("value",), ("output",)),
    (("query",), ("key", "value"), ("output",)),
    (("query", "key"), ("value",), ("output",)),
    (("query", "key", "value"), ("output",)),
)
"""Arrangements of the four projections in two to four parameters."""

MOST = 400
"""Number of tables that are compared; four unnamed projections, turned or not, allow 96."""

_MOST_MATRICES = 6
"""More matrices are no network with one inner layer: those of experts allow thousands of tables."""

Group = tuple[str, ...]


def leaf_tables(component: str, units: list[Unit], sizes: Sizes) -> list[Entries]:
    """Return every table for `component` that shapes and names allow."""
    found = list(_TABLES[component](units, sizes)) if component in _TABLES else []
    if component == "multi_head_attention":
        found = [*_with_sinks(found, units, sizes), *found]
        tables = [unit.weight for unit in units if is_bias_table(unit, sizes)]
        biased: Entries = {"relative_bias.weight": tables[0]} if len(tables) == 1 else {}
        found = [table | biased for table in found]
        normed = _norms_of_heads(units, sizes)
        found = [table | normed for table in found]
    return [table for number, table in enumerate(found) if table not in found[:number]]


def is_of_heads(unit: Unit, sizes: Sizes) -> bool:
    """Return whether a parameter is one that attention may have besides its projections."""
    return is_sink(unit, sizes) or is_norm_of_heads(unit, sizes)


def is_norm_of_heads(unit: Unit, sizes: Sizes) -> bool:
    """Say whether names and shapes allow that a unit norms queries or keys, in heads or in all."""
    widths = (sizes.d_model // sizes.heads, sizes.d_model)
    wide = len(squeezed(unit.shape)) == 1 and max(unit.shape) in widths
    return wide and unit.kind == "norm" and norm_of_heads(unit.path) != ""


def _norms_of_heads(units: list[Unit], sizes: Sizes) -> Entries:
    """Return the entries of the norms of queries and of keys, {} where there are not both."""
    held = {norm_of_heads(one.path): one for one in units if is_norm_of_heads(one, sizes)}
    if held.keys() != {"query", "key"} or len({one.shape for one in held.values()}) != 1:
        return {}
    return {
        name: place
        for role, unit in held.items()
        for name, place in norm_entries(f"{role}_norm", unit).items()
    }


def is_sink(unit: Unit, sizes: Sizes) -> bool:
    """Say whether names and shapes allow that a unit has one trained score for each head."""
    return squeezed(unit.shape) == (sizes.heads,) and not unit.bias and says_sink(unit.path)


def is_bias_table(unit: Unit, sizes: Sizes) -> bool:
    """Say whether the shape allows that a unit has a trained number for each bucket and head."""
    return unit.shape == (sizes.bias_buckets, sizes.heads) and not unit.bias


def _with_sinks(tables: list[Entries], units: list[Unit], sizes: Sizes) -> Iterator[Entries]:
    """Yield the `tables` with the scores of nothing, where there is one for each head."""
    sinks = [unit for unit in units if is_sink(unit, sizes)]
    for table in tables if len(sinks) == 1 else ():
        (score,) = norm_entries("", sinks[0]).values()
        yield {**table, "sink.score": score}


def tables_against_names(component: str, units: list[Unit], sizes: Sizes) -> list[Entries]:
    """Return the tables that shapes allow and names do not."""
    if component != "multi_head_attention":
        return []
    silent: dict[Unit, Group] = {unit: () for unit in units if unit.kind != "norm"}
    named = leaf_tables(component, units, sizes)
    return [table for table in _attention(silent, sizes) if table not in named]


def interleaved_tables(units: list[Unit], sizes: Sizes) -> list[Entries]:
    """Return the tables of an attention whose heads are interleaved in all four projections."""
    stored = [unit for unit in units if unit.kind != "norm"]
    if sizes.heads == 1 or any(unit.kind == "packed" or unit.per_head for unit in stored):
        return []
    return list(_multi_head_attention(units, sizes, INTERLEAVED))


def _multi_head_attention(
    units: list[Unit], sizes: Sizes, heads: Sequence[str] = SLICES
) -> Iterator[Entries]:
    held = [one for one in units if one.kind != "norm" and not is_bias_table(one, sizes)]
    names = beyond([unit.path for unit in held])
    said = dict(zip(held, _roles_said(names), strict=True))
    if len(held) == len(PROJECTIONS) and list(said.values()).count(("query", "key", "value")) == 3:
        listed = iter(PROJECTIONS)  # "qkv.0" to "qkv.2" hold one projection each
        said = {unit: (next(listed),) if len(one) == 3 else one for unit, one in said.items()}
    yield from _attention(said, sizes, heads)


def _roles_said(names: Sequence[str]) -> list[Group]:
    """Return the projections that each name says.

    The last segment of a name that others have, too, is an attribute of one class, and says nothing
    where the segment before it does: "q.qkv" holds a query, and "kv.qkv" keys and values.
    """
    lasts = Counter(name.rpartition(".")[2] for name in names)
    found = []
    for name in names:
        owner, _, last = name.rpartition(".")
        before = projections(owner) if lasts[last] > 1 and projections(last) else ()
        found.append(before or projections(name))
    return found


def _attention(
    said: Mapping[Unit, Group], sizes: Sizes, heads: Sequence[str] = SLICES
) -> Iterator[Entries]:
    """Yield the tables of the first packing and head width that fit at all."""
    for packing in sorted(_PACKINGS, key=lambda packing: abs(len(packing) - len(said))):
        for width in (sizes.d_model // sizes.heads, sizes.d_model):
            found = list(islice(_assigned(packing, said, sizes, width, heads), MOST))
            if found:
                yield from found
                return


def _assigned(
    packing: Sequence[Group],
    said: Mapping[Unit, Group],
    sizes: Sizes,
    width: int,
    heads: Sequence[str],
) -> Iterator[Entries]:
    """Yield the tables in which each group of projections lies in a unit of its own."""
    options = [
        [
            (unit, layout, table)
            for unit in _allowed(group, said)
            for layout, table in _readings(group, unit, sizes, width, heads)
        ]
        for group in packing
    ]
    for chosen in product(*options):
        shapes = {unit.shape for unit, _, _ in chosen[:-1]}
        layouts = {layout for _, layout, _ in chosen[:-1]}
        # Input projections of one shape are stored alike.
        if len({unit for unit, _, _ in chosen}) == len(packing) and len(layouts) <= len(shapes):
            yield {name: place for _, _, table in chosen for name, place in table.items()}


def _allowed(group: Group, said: Mapping[Unit, Group]) -> list[Unit]:
    """Return the units whose names say `group`, or else those that say nothing."""
    named = [unit for unit, roles in said.items() if set(roles) == set(group)]
    taken = {role for roles in said.values() if len(roles) <= len(group) for role in roles}
    return named or [unit for unit in said if not said[unit] and not taken & set(group)]


def _readings(
    group: Group, unit: Unit, sizes: Sizes, width: int, heads: Sequence[str]
) -> list[tuple[str, Entries]]:
    """Return the ways to read `group` out of `unit`, each with the name of its layout."""
    shared = sizes.kv_heads == 1 and group != ("output",)
    if shared and {*group} > {"query"}:
        return _spans(group, unit, sizes, width)
    alone = unit.per_head or (shared and "query" not in group)
    several = {} if alone else {"h": sizes.heads}
    inner: Axes = {**several, "e": width}
    model: Axes = {"d": sizes.d_model}
    if group == ("output",):
        # Projections of each head that are added up lie side by side: no table says that.
        found = [] if unit.per_head else ways(unit, model, inner, heads=heads)
        return [(_layout(one), one.entries("output", unit)) for one in found]
    count: Axes = {"n": len(group)} if len(group) > 1 else {}
    stored = ways(unit, {**count, **inner}, model, heads=heads)
    if unit.kind == "packed" or unit.per_head:
        stored = stored[:1] if count else stored
    return [
        (_layout(one), _packed(one, order, unit))
        for order in _orders(group, unit)
        for one in stored
    ]


def _spans(group: Group, unit: Unit, sizes: Sizes, width: int) -> list[tuple[str, Entries]]:
    """Return the one way to read all three projections where keys and values have one head."""
    rows = (sizes.heads + 2) * width
    wanted = {(rows, sizes.d_model): False, (sizes.d_model, rows): True}
    if unit.shape not in wanted or len(group) < 3 or unit.bias_shape not in ((), (rows,)):
        return []
    turned = wanted[unit.shape]
    found: Entries = {}
    for role in group:
        found[f"{role}.weight"] = Place(unit.weight, transpose=turned, span=role)
        if unit.bias:
            found[f"{role}.bias"] = Place(unit.bias, span=role)
    return [(f"spans {turned}", found)]


def _packed(stored: Stored, order: Group, unit: Unit) -> Entries:
    found: Entries = {}
    for role in sorted(order, key=PROJECTIONS.index):
        part = (order.index(role), len(order)) if len(order) > 1 else None
        found |= stored.entries(role, unit, part)
    return found


def _orders(group: Group, unit: Unit) -> list[Group]:
    """Return the orders that a packed unit may have: the one it is known to have, or all."""
    owner, _, last = unit.path.rpartition(".")
    if unit.kind == "packed" or len(group) == 1:
        return [group]
    for said in (
        projections(last) or projections(unit.path),
        projections(owner.rpartition(".")[2]),
    ):
        if set(said) == set(group):
            return [said]
    return list(permutations(group))


def _layout(stored: Stored) -> str:
    return f"{stored.weight.transpose} {stored.weight.layout}"


def _feed_forward(units: list[Unit], sizes: Sizes) -> Iterator[Entries]:
    held = [unit for unit in units if unit.kind != "norm"]
    if len(held) == 3:
        yield from _gated(held, sizes)
    if len(held) == 2:
        yield from _gate_packed(held, sizes)
    roles = {feed_forward_role(unit.path) for unit in held}
    if roles != {"gate", "inner", "outer"} and len(held) <= _MOST_MATRICES:
        yield from _without_gate(held, sizes)


def _gated(held: list[Unit], sizes: Sizes) -> Iterator[Entries]:
    """Yield the tables of three matrices: a gate, what it multiplies, and the way back."""
    model: Axes = {"d": sizes.d_model}
    for gate, inner, outer in permutations(held):
        roles = {"gate": gate, "inner": inner, "outer": outer}
        if not all(_may_be(role, unit, held) for role, unit in roles.items()):
            continue
        for wide in _widths(inner, sizes):
            options = (ways(gate, wide, model), ways(inner, wide, model), ways(outer, model, wide))
            for chosen in product(*options):
                found: Entries = {}
                for stored, (role, unit) in zip(chosen, roles.items(), strict=True):
                    found |= stored.entries(role, unit)
                yield found


def _may_be(role: str, unit: Unit, held: list[Unit]) -> bool:
    """Say whether names allow that `unit` has `role`: it says so, or no name says anything."""
    said = {one: feed_forward_role(one.path) for one in held}
    return said[unit] == role or (not said[unit] and role not in said.values())


def _gate_packed(held: list[Unit], sizes: Sizes) -> Iterator[Entries]:
    """Yield the tables of two matrices, of which the first holds gate and inner."""
    model: Axes = {"d": sizes.d_model}
    for both, outer in permutations(held, 2):
        lengths = [one for one in squeezed(outer.shape) if one != sizes.d_model]
        if len(lengths) != 1 or 2 * lengths[0] not in both.shape:
            continue
        wide: Axes = {"f": lengths[0]}
        for one, other, order in product(
            ways(both, {"n": 2, **wide}, model),
            ways(outer, model, wide),
            (("gate", "inner"), ("inner", "gate")),
        ):
            packed = {
                name: place
                for number, role in enumerate(order)
                for name, place in one.entries(role, both, (number, 2)).items()
            }
            yield packed | other.entries("outer", outer)


def _without_gate(held: list[Unit], sizes: Sizes) -> Iterator[Entries]:
    for inner, outer in permutations(held, 2):
        model: Axes = {"d": sizes.d_model}
        for wide in _widths(inner, sizes):
            for one, other in product(ways(inner, wide, model), ways(outer, model, wide)):
                yield {**one.entries("inner", inner), **other.entries("outer", outer)}


def _widths(inner: Unit, sizes: Sizes) -> list[Axes]:
    """Return the inner width that was asked for, or else the one that there is.

    A width that is not the asked one stays a mistake: loading says so. Where the model's was asked
    for, both axes have it.
    """
    lengths = [length for length in squeezed(inner.shape) if length != sizes.d_model]
    if sizes.d_ff == sizes.d_model and not lengths:
        return [{"f": sizes.d_ff}]
    return [{"f": sizes.d_ff if sizes.d_ff in lengths else length} for length in lengths[:1]]


def norm_entries(slot: str, unit: Unit) -> Entries:
    """Return the lines of a table that map the norm `slot` to `unit`."""
    found: Entries = {}
    for role, name, shape in (
        ("gain", unit.weight, unit.shape),
        ("bias", unit.bias, unit.bias_shape),
    ):
        for stored in (
            ways(Unit(name, "norm", name, "", shape), {"d": max(shape)}, {}) if name else ()
        ):
            found |= {
                f"{slot}.{role}".lstrip("."): place
                for place in stored.entries("", Unit(name, "norm", name)).values()
            }
    return found


def _layer_norm(units: list[Unit], sizes: Sizes) -> Iterator[Entries]:
    yield from (norm_entries("", unit) for unit in units if unit.kind == "norm")


def _residual(units: list[Unit], sizes: Sizes) -> Iterator[Entries]:
    yield from (norm_entries("norm", unit) for unit in units if unit.kind == "norm")


def matrix_tables(slot: str, unit: Unit, rows: int, columns: int) -> list[Entries]:
    """Return the tables of one matrix (rows, columns) in `unit`, with its bias if it has one."""
    return [stored.entries(slot, unit) for stored in ways(unit, {"v": rows}, {"d": columns})]


def _embedding(units: list[Unit], sizes: Sizes) -> Iterator[Entries]:
    for unit in units:
        yield from matrix_tables("", unit, sizes.source_vocabulary, sizes.d_model)


def _generator(units: list[Unit], sizes: Sizes) -> Iterator[Entries]:
    for unit in units:
        yield from matrix_tables("", unit, sizes.target_vocabulary, sizes.d_model)


RESERVED = (0, 1, 2, 3)
"""The rows in front of that of the first position, in a table that has them besides its length."""


def _positional_encoding(units: list[Unit], sizes: Sizes) -> Iterator[Entries]:
    for unit, more in product(units, RESERVED):
        yield from matrix_tables("", unit, sizes.max_length + more, sizes.d_model)


_TABLES: Mapping[str, Callable[[list[Unit], Sizes], Iterator[Entries]]] = {
    "multi_head_attention": _multi_head_attention,
    "feed_forward": _feed_forward,
    "layer_norm": _layer_norm,
    "rms_norm": _layer_norm,
    "residual": _residual,
    "embedding": _embedding,
    "generator": _generator,
    "positional_encoding": _positional_encoding,
}
