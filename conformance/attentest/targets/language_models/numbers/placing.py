"""Queries and keys among the numbers of a call: turned by their positions, normalised, or both."""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import partial
from itertools import product

import numpy as np

from attentest.targets.language_models.numbers.constants import BASES
from attentest.targets.language_models.numbers.findings import against
from attentest.targets.language_models.numbers.mistakes import Mistake
from attentest.targets.language_models.numbers.norms import Options, bare, kinds, parameters
from attentest.targets.language_models.numbers.places import View
from attentest.targets.language_models.numbers.reader import Reader
from attentest_spec import CHOICES, Choices
from attentest_spec.choices import Value
from attentest_spec.multi_head_attention import LEAST_LENGTH, split
from attentest_spec.rms_norm import rms_norm
from attentest_spec.rotary import columns, turned, turns
from attentest_spec.setting import Floats, Setting

WIDTHS: tuple[Value, ...] = ("whole", 0.25, 0.5, 0.75)
"""The parts of a head that may be turned."""

Views = Mapping[str, View]
Way = tuple[Options, Views]
"""Choices, and the views of the weights that they need."""

_PLAIN: Options = {"attention_rotary": "none"}
BARE: Options = {"query_key_norm": "none"}
"""Queries and keys without norms."""


def ways(reader: Reader, known: Options, query: Floats, key: Floats) -> Iterator[Way]:
    """Yield how queries (B, H, T, E) and keys (B, G, T, E) are placed, as the call computes them.

    `known` are the choices so far. What the call goes on to compute is part of the way: one that
    leaves it out comes later.
    """
    for normal, views in _norms(reader, known, query, key):
        both = [normal_of(reader, normal, views, name, x) for name, x in _named(query, key)]
        before: Options = {**normal, "query_key_norm_place": "before-rotation"}
        for turn in _turns(reader, known, *both):
            yield {**before, **turn}, views
        yield {**before, **_PLAIN}, views
    for turn in _turns(reader, known, query, key):
        turned_ones = [turned_by(reader, turn, one) for one in (query, key)]
        for normal, views in _norms(reader, known, *turned_ones):
            yield {**normal, **turn, "query_key_norm_place": "after-rotation"}, views
        yield {**turn, **BARE}, {}
    yield {**_PLAIN, **BARE}, {}


def normed_ways(
    reader: Reader, known: Options, query: Floats, key: Floats
) -> Iterator[tuple[Options, Views, Floats, Floats]]:
    """Yield norms of queries and keys, or none, with what they are before they are turned."""
    yield BARE, {}, query, key
    for normal, views in _norms(reader, known, query, key):
        one, two = (normal_of(reader, normal, views, name, x) for name, x in _named(query, key))
        yield {**normal, "query_key_norm_place": "before-rotation"}, views, one, two


def _named(query: Floats, key: Floats) -> tuple[tuple[str, Floats], ...]:
    return ("query_norm", query), ("key_norm", key)


def _turns(reader: Reader, known: Options, query: Floats, key: Floats) -> Iterator[Options]:
    """Yield the options of rotary positions with which both are computed."""
    mistaken = reader.mistaken
    first = key if mistaken and mistaken.unturned else query
    for options in turns_of(reader, known, first, mistaken if mistaken and mistaken.both else None):
        own = turned_key(reader, options, key, reader.mistaken)
        if reader.holds_heads(own) or reader.holds(_repeated(own, query.shape[1])):
            yield options


def _repeated(key: Floats, heads: int) -> Floats:
    """Return the keys (B, G, T, E) of so many heads, as code has them that repeats before turns."""
    return key.repeat(heads // key.shape[1], axis=1)


def turns_of(
    reader: Reader, known: Options, query: Floats, mistake: Mistake | None = None
) -> Iterator[Options]:
    """Yield the options of rotary positions with which queries (B, H, T, E) are computed.

    A `mistake` of queries and keys is one with which they are.
    """
    kind = f"turn with {mistake.words}" if mistake else "turn"
    for options in reader.once(kind, query, {}, partial(_turned_so, reader, query, mistake)):
        if not against(known, options):
            yield options


def look_for_tables(reader: Reader, known: Options, query: Floats) -> None:
    """Look for cosines and sines of rotary positions, so that the trace knows which are right."""
    for options in _every_turn(reader):
        if against(known, options):
            continue
        given = Setting(reader.sizes, Choices.of({**reader.declared, **options}))
        length, width = query.shape[2:]
        with suppress(ValueError):  # the width is no such part
            for table in turns(given, np.arange(length), width, length):
                reader.holds(table)
                reader.holds(np.concatenate([table, table], axis=-1))


def _turned_so(reader: Reader, x: Floats, mistake: Mistake | None) -> Iterator[Options]:
    for options in _every_turn(reader):
        if reader.holds_heads(turned_key(reader, options, x, mistake)):
            yield options


def _every_turn(reader: Reader) -> Iterator[Options]:
    """Yield the options of rotary positions that are tried."""
    bases: list[Value] = [*dict.fromkeys([*(b for b in reader.constants if b >= 100), *BASES])]
    names = ("rotary_pairs", "rotary_direction")
    listed = [[one.name for one in CHOICES[name].options] for name in names]
    partials = [one.name for one in CHOICES["rotary_partial"].options]
    for base, width, *others in product(bases, WIDTHS, *listed):
        for way in partials if width != "whole" else partials[:1]:
            yield {
                "attention_rotary": "query-and-key",
                "rotary_base": base,
                "rotary_width": width,
                "rotary_partial": way,
                **dict(zip(names, others, strict=True)),
            }


def turned_by(reader: Reader, options: Options, x: Floats) -> Floats:
    """Return the heads x (B, H, T, E) turned; NaN where `options` fit no such width."""
    given = Setting(reader.sizes, Choices.of({**reader.declared, **options}))
    places = np.broadcast_to(np.arange(x.shape[2]), (len(x), x.shape[2]))
    try:
        return turned(given, x, places, x.shape[2])
    except ValueError:
        return np.full_like(x, np.nan)


def turned_key(reader: Reader, options: Options, key: Floats, mistake: Mistake | None) -> Floats:
    """Return the heads of keys (B, G, T, E) turned as queries are, or as a `mistake` has it."""
    own = mistake.keys(options) if mistake and mistake.keys else options
    if own["attention_rotary"] == "none":
        return key
    if mistake is None or mistake.angles is None:
        return turned_by(reader, own, key)
    return _turned_apart(reader, own, mistake.angles(options), key)


def _turned_apart(reader: Reader, pairs: Options, angles: Options, x: Floats) -> Floats:
    """Return the heads x (B, H, T, E) turned in some `pairs`, by `angles` laid out for others."""
    mine, others = (Choices.of({**reader.declared, **one}) for one in (pairs, angles))
    found = turns(Setting(reader.sizes, others), np.arange(x.shape[2]), x.shape[-1], x.shape[2])
    laid = [np.ones(x.shape[2:]), np.zeros(x.shape[2:])]
    for held, values in zip(laid, found, strict=True):
        for place in columns(others, x.shape[-1]):
            held[:, place] = values
    cosines, sines = laid
    one, other = columns(mine, x.shape[-1])
    result: Floats = x.copy()
    result[..., one] = x[..., one] * cosines[:, one] - x[..., other] * sines[:, one]
    result[..., other] = x[..., other] * cosines[:, other] + x[..., one] * sines[:, other]
    return result


def _norms(reader: Reader, known: Options, query: Floats, key: Floats) -> Iterator[Way]:
    """Yield the norms of queries and keys that the call computes, with their weights."""
    rms = {name: value for name, value in known.items() if name.startswith("rms_")}
    own, other = (
        reader.once(name, x, rms, partial(_normalised, reader, rms, name, x))
        for name, x in _named(query, key)
    )
    for (options, one), (same, two) in product(own, other):
        places = [view.place for view in (*one.values(), *two.values())]
        shared = any(places.count(place) > 1 for place in places)
        if options == same and not shared and not against(known, options):
            yield options, {**one, **two}


def _normalised(reader: Reader, rms: Options, name: str, x: Floats) -> Iterator[Way]:
    """Yield the norms called `name` of the heads x that the call computes."""
    rows = {"per-head": x, "whole-projection": _merged(x)}
    for kind, values in rows.items():
        for found in kinds(reader, {"rms_bias": "none", **rms, "norm_kind": "rms"}):
            choices = Choices.of({**reader.declared, **found})
            plain = rms_norm(bare(reader, choices, values.shape[-1]), values)
            options: Options = {"query_key_norm": kind, **found}
            del options["norm_kind"]
            for held in parameters(reader, options, plain):
                views = {f"{name}.{leaf}": view for leaf, view in held.items()}
                if reader.holds(normal_of(reader, options, views, name, x)):
                    yield options, views
    unit: Options = {"query_key_norm": "unit-length"}
    if reader.holds(normal_of(reader, unit, {}, name, x)):
        yield unit, {}


def normal_of(reader: Reader, options: Options, views: Views, name: str, x: Floats) -> Floats:
    """Return the heads x (B, H, T, E) under the norm `name`, as the formula has it."""
    values = {one: view.values for one, view in views.items()}
    given = Setting(reader.sizes, Choices.of({**reader.declared, **options}), values)
    if options["query_key_norm"] == "unit-length":
        length = np.sqrt(np.square(x).sum(-1, keepdims=True))
        return np.asarray(x / np.maximum(length, LEAST_LENGTH))
    if options["query_key_norm"] == "per-head":
        return rms_norm(given.under(name), x)
    return split(rms_norm(given.under(name), _merged(x)), x.shape[1])


def _merged(x: Floats) -> Floats:
    """Return the heads x (B, H, T, E) side by side, (B, T, H * E)."""
    return x.swapaxes(1, 2).reshape(len(x), x.shape[2], -1)
