"""Attention among the numbers of a call: which maps are which, and what becomes of the scores."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import permutations, product

import numpy as np

from attentest.targets.adapt.parameters.words import says_sink
from attentest.targets.language_models.numbers.findings import Found, State, against
from attentest.targets.language_models.numbers.linears import Linear, linears
from attentest.targets.language_models.numbers.mistaken_attention import (
    computes_before,
    place_of,
    unmerged,
    weighted_by_hand,
)
from attentest.targets.language_models.numbers.mistakes import (
    LIFTED,
    OF_BOTH,
    OF_KEYS,
    OF_QUERIES,
    OF_SCORES,
    OF_VALUES,
    UNMERGED,
    Mistake,
)
from attentest.targets.language_models.numbers.norms import Options
from attentest.targets.language_models.numbers.places import View, matching
from attentest.targets.language_models.numbers.placing import (
    Views,
    look_for_tables,
    normed_ways,
    turned_by,
    turns_of,
    ways,
)
from attentest.targets.language_models.numbers.reader import Reader
from attentest_spec import Choices
from attentest_spec.attention import softmax
from attentest_spec.choices import Value
from attentest_spec.language_model import visible
from attentest_spec.multi_head_attention import multi_head_attention, split
from attentest_spec.setting import Floats, Mask, Setting

_BIASES = {
    (): "none",
    ("key", "output", "query", "value"): "present",
    ("output",): "output-alone",
    ("output", "query", "value"): "all-but-key",
    ("key", "query", "value"): "all-but-output",
}
"""The options of `projection_bias` by the maps with a bias, in the order of the alphabet."""

_SCORE_BIASES: tuple[Value, ...] = ("none", "alibi", "alibi-geometric")


_MAPS = 3
"""Queries, keys and values."""

_STEPS = (
    "queries, keys and values of",
    "scores and weighted values of",
    "the output projection of",
)


@dataclass(frozen=True)
class _Mixture:
    """Weighted values (B, T, H * E) that a call computes, with the maps and options behind them."""

    maps: dict[str, Linear]
    options: Options
    norms: Views
    context: Floats

    @property
    def views(self) -> dict[str, View]:
        """The parameters up to the output projection."""
        found = dict(self.norms)
        for name, one in self.maps.items():
            found |= one.views(name)
        return found


def attentions(reader: Reader, found: Found, path: str, h: Floats, step: int) -> Iterator[State]:
    """Yield what follows if h (B, T, D) passes through the attention at the canonical `path`."""
    known = {name: one for name, one in found.choices.items() if _concerns(name)}

    def looks_for(number: int) -> None:
        reader.looks_for(step + number, f"{_STEPS[number]} {path}")

    looks_for(0)
    for mixture in reader.once("mix", h, known, partial(_mixtures, reader, known, h, looks_for)):
        if found.uses(mixture.views.values()):
            continue
        looks_for(2)
        yield from _projected(reader, found, path, mixture)


def _concerns(choice: str) -> bool:
    """Say whether `choice` is one of those that queries, keys and scores depend on."""
    own = ("rms_", "rotary_", "query_key_", "score_", "relative_", "attention_")
    return choice.startswith(own) or choice in ("key_heads", "head_width")


def _mixtures(
    reader: Reader, known: Options, h: Floats, looks_for: Callable[[int], None]
) -> Iterator[_Mixture]:
    """Yield the weighted values of h that the call computes: the first are the only ones.

    Heads are as wide as the model where maps to so many columns are computed: each of them alone
    may be taken for one to all heads.
    """
    sizes = reader.sizes
    if len(list(linears(reader, h, sizes.heads * sizes.d_model))) >= _MAPS and sizes.heads > 1:
        wide: Options = {"head_width": "d"}
        found = _of_width(reader, sizes.d_model, {**known, **wide}, h, looks_for)
        yield from (replace(one, options={**one.options, **wide}) for one in found)
    elif known.get("head_width") != "d":
        yield from _of_width(reader, sizes.d_model // sizes.heads, known, h, looks_for)


def _of_width(
    reader: Reader, width: int, known: Options, h: Floats, looks_for: Callable[[int], None]
) -> Iterator[_Mixture]:
    """Yield the weighted values of heads of one `width`, under the choices `known`."""
    sizes = reader.sizes
    shared = sizes.kv_heads or sizes.heads
    queries = _distinct(linears(reader, h, sizes.heads * width))
    others = queries if shared == sizes.heads else _distinct(linears(reader, h, shared * width))
    for maps in _triples(queries, others):
        query, key = split(maps["query"].output, sizes.heads), split(maps["key"].output, shared)
        looks_for(1)
        for placed, views in ways(reader, known, query, key):
            for bias, cap, sink in product(_SCORE_BIASES, _caps(reader), _sinks(reader)):
                options = {**placed, "relative_bias": bias, "score_cap": cap, **sink.choices}
                if against(known, options) or reader.is_late:
                    continue
                held = {**views, **sink.views}
                context = _context(reader, {**known, **options}, maps, held, h)
                if reader.holds(context):
                    yield _Mixture(maps, options, held, context)
                    return
            if placed["query_key_norm"] == "none":
                _look_for_scores(reader, placed, query, key, split(maps["value"].output, shared))
            _suspect(reader, known | placed, maps, views, h)
            for bias in _SCORE_BIASES[1:]:
                _suspect(
                    reader, {**known, **placed, "relative_bias": bias}, maps, views, h, [LIFTED]
                )
        _suspect_turns(reader, known, maps, h, query, key)
        look_for_tables(reader, known, query)


@dataclass(frozen=True)
class _Sink:
    """The scores of nothing that heads have, or none."""

    choices: Options
    views: Views


def _sinks(reader: Reader) -> list[_Sink]:
    """Return what heads may have next to the scores of their keys, as parameters are named."""
    named = [view for view in reader.rows(reader.sizes.heads) if says_sink(view.name)]
    found = [_Sink({"attention_sink": "per-head"}, {"sink.score": view}) for view in named]
    return [*found, _Sink({"attention_sink": "none"} if named else {}, {})]


def _look_for_scores(
    reader: Reader, placed: Options, query: Floats, key: Floats, value: Floats
) -> None:
    """Look for the scores and the weights, so that the trace knows how far the code is right."""
    if placed["attention_rotary"] != "none":
        query, key = (turned_by(reader, placed, one) for one in (query, key))
    shared, values = (np.repeat(x, query.shape[1] // x.shape[1], axis=1) for x in (key, value))
    reader.holds(values)
    scores = query @ shared.swapaxes(-1, -2)
    reader.holds(scores)
    scores *= query.shape[-1] ** -0.5
    reader.holds(scores)
    reader.holds(softmax(np.where(visible(scores.shape[-1]), scores, -np.inf)))


def _suspect(
    reader: Reader,
    choices: Options,
    maps: dict[str, Linear],
    norms: Views,
    h: Floats,
    tried: Sequence[Mistake] = OF_SCORES,
) -> None:
    """Remember a well-known mistake with which the call computes the weighted values."""
    if reader.mistaken or reader.suspected:
        return
    for one in tried:
        values = _mistaken(reader, one, choices, maps, norms, h)
        if reader.trace.holds(values, known=False):
            reader.suspected = one
            if one.is_by_hand or one.scale or one.ahead > 0:
                reader.begun = place_of(reader, one, choices, maps, norms)
            return


def _suspect_turns(
    reader: Reader, known: Options, maps: dict[str, Linear], h: Floats, query: Floats, key: Floats
) -> None:
    """Remember a well-known mistake of what is turned by its positions, and how."""
    for normal, views, one, two in normed_ways(reader, known, query, key):
        for x, mistakes, turned in (
            (one, [*OF_KEYS, *OF_VALUES], None),
            (two, OF_QUERIES, None),
            (one, OF_BOTH, OF_BOTH[0]),
        ):
            for turn in turns_of(reader, known, x, turned):
                _suspect(reader, {**known, **turn, **normal}, maps, views, h, mistakes)


def _mistaken(
    reader: Reader,
    mistake: Mistake,
    choices: Options,
    maps: dict[str, Linear],
    norms: Views,
    h: Floats,
) -> Floats:
    """Return the weighted values under `choices` with a mistake; NaN where it has no formula."""
    if mistake.is_by_hand:
        return weighted_by_hand(reader, mistake, choices, maps, norms)
    if not computes_before(reader, mistake, choices, maps, norms):
        return np.full_like(maps["query"].output, np.nan)
    options = {**choices, **mistake.options(reader.sizes)}
    return _weighted(reader, options, maps, norms, h, mistake.seen(h.shape[1]))


def _distinct(found: Iterable[Linear]) -> list[Linear]:
    """Return the first of the maps that are `found` with the same numbers each.

    Rows of a packed matrix have several names: queries and keys that are the same map are none.
    """
    known: dict[bytes, Linear] = {}
    for one in found:
        known.setdefault(one.output.tobytes(), one)
    return list(known.values())


def _triples(queries: list[Linear], others: list[Linear]) -> Iterator[dict[str, Linear]]:
    names = ("query", "key", "value")
    if queries is others:
        yield from (dict(zip(names, found, strict=True)) for found in permutations(queries, 3))
        return
    for query, (key, value) in product(queries, permutations(others, 2)):
        yield {"query": query, "key": key, "value": value}


def _caps(reader: Reader) -> list[Value]:
    return ["none", *(one for one in reader.constants if 1 < one <= 1000)]


def _context(
    reader: Reader, choices: Options, maps: dict[str, Linear], norms: Views, h: Floats
) -> Floats:
    """Return the weighted values under `choices`, with the mistake that the reader knows of."""
    if reader.mistaken is None:
        return _weighted(reader, choices, maps, norms, h)
    return _mistaken(reader, reader.mistaken, choices, maps, norms, h)


def _weighted(
    reader: Reader,
    choices: Options,
    maps: dict[str, Linear],
    norms: Views,
    h: Floats,
    seen: Mask | None = None,
) -> Floats:
    """Return the weighted values of all heads (B, T, H * E): before the output projection.

    `seen` is another mask (1, 1, T, T) than that of the keys up to each query.
    """
    views = _Mixture(maps, choices, norms, h).views
    values = {name: view.values for name, view in views.items()}
    values["output.weight"] = np.eye(maps["query"].output.shape[-1])
    given = Setting(reader.sizes, Choices.of(choices), values)
    return multi_head_attention(given, h, h, h, visible(h.shape[1]) if seen is None else seen)


def _projected(reader: Reader, found: Found, path: str, mixture: _Mixture) -> Iterator[State]:
    for output in _outputs(reader, mixture.context):
        biased = {name for name, one in mixture.maps.items() if one.bias}
        biased |= {"output"} if output.bias else set()
        views = {**mixture.views, **output.views("output")}
        option = _BIASES.get(tuple(sorted(biased)))
        if option is None or found.uses(output.views("output").values()):
            continue
        held = {f"{path}.{name}": view for name, view in views.items()}
        after = found.but({**mixture.options, "projection_bias": option}, held)
        if after:
            yield State(after, output.output)


def _outputs(reader: Reader, context: Floats) -> Iterator[Linear]:
    """Yield the projections of the weighted values (B, T, H * E) that the call computes.

    Of heads that are merged in another way, the mistake is remembered.
    """
    wrong, width = unmerged(context, reader.sizes.heads), reader.sizes.d_model
    if reader.mistaken and reader.mistaken.unmerged:
        yield from linears(reader, wrong, width, late=True)
        return
    computed = list(linears(reader, context, width, late=True))
    if not (computed or reader.mistaken or reader.suspected) and any(
        reader.trace.holds(wrong @ weight.values.T + bias, known=False)
        for weight in reader.matrices(width, wrong.shape[-1])
        for bias in _biases(reader, weight)
    ):
        reader.suspected = UNMERGED
    yield from computed


def _biases(reader: Reader, weight: View) -> Iterator[Floats]:
    """Yield what may be added to what the map `weight` gives: nothing, and its biases."""
    yield np.zeros(1)
    yield from (one.values for one in reader.rows(len(weight.values)) if matching(weight, one))
