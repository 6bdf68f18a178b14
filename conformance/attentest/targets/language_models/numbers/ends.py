"""Both ends of a model among the numbers of a call: embeddings with positions, and logits."""

from collections.abc import Iterator
from itertools import product

import numpy as np

from attentest.targets.language_models.numbers.findings import Found, State
from attentest.targets.language_models.numbers.mistakes import PLACES_TWICE
from attentest.targets.language_models.numbers.norms import Options, norms
from attentest.targets.language_models.numbers.places import View
from attentest.targets.language_models.numbers.reader import Reader
from attentest.targets.language_models.numbers.tracing import NEAR
from attentest_spec import CHOICES, Choices
from attentest_spec.choices import Value
from attentest_spec.generator import generator
from attentest_spec.positional_encoding import table
from attentest_spec.setting import Array, Floats, Setting

_OFFSETS = (0, 1, 2)
"""The rows of a trained table before that of the first position."""

_SINE_OFFSETS = (0, 2)
"""Those of a table of sines: it may keep two for padding, and to begin at 1 is a mistake."""


def embeddings(reader: Reader, found: Found, tokens: Array) -> Iterator[State]:
    """Yield what the tokens (B, T) may be embedded as, with positions and a norm, or without."""
    width = reader.sizes.d_model
    for view in reader.parameters.tables(width):
        if len(view.values) != reader.sizes.target_vocabulary:
            continue
        for scale in ("sqrt-d", "none"):
            rows = view.values[tokens] * (np.sqrt(width) if scale == "sqrt-d" else 1.0)
            if not reader.holds(rows):
                continue
            for options, views, places in _positions(reader, tokens.shape[1]):
                held = {"embedding.weight": view, **views}
                after = found.but({"embedding_scale": scale, **options}, held)
                if after is None:
                    continue
                if places is not None and not views:
                    _suspect_two(reader, rows, places)
                    places = places * (reader.mistaken.places if reader.mistaken else 1)
                if places is None or reader.holds(rows + places):
                    yield from _normalised(reader, State(after, rows + _zero(places)))


def _zero(places: Floats | None) -> Floats | float:
    return 0.0 if places is None else places


def _suspect_two(reader: Reader, rows: Floats, places: Floats) -> None:
    """Remember that sines (T, D) are added twice to the embedded tokens (B, T, D)."""
    known = reader.mistaken or reader.suspected
    if not known and reader.trace.holds(rows + 2 * places, known=False):
        reader.suspected = PLACES_TWICE


def _normalised(reader: Reader, state: State) -> Iterator[State]:
    """Yield the sum as it is, and normalised where the call computes that."""
    plain = state.found.but({"embedding_norm": "none"}, {})
    if plain:
        yield State(plain, state.x)
    after = state.found.but({"embedding_norm": "present"}, {})
    if after:
        yield from norms(reader, after, "embedding_norm", state.x)


def _positions(
    reader: Reader, length: int
) -> Iterator[tuple[Options, dict[str, View], Floats | None]]:
    """Yield what may be added by position: rows (T, D), None for nothing, which comes last.

    Sines come first: a parameter that holds them, and is not trained, is no learned table.
    """
    width = reader.sizes.d_model
    for offset, option in product(_SINE_OFFSETS, CHOICES["positional_encoding"].options):
        if option.name not in ("learned", "learned-scaled", "none"):
            options: Options = {
                "positional_encoding": option.name,
                "position_offset": _first(offset),
            }
            yield options, {}, table(Setting(choices=Choices.of(options)), length, width)
    for view, offset in product(reader.parameters.tables(width), _OFFSETS):
        if len(view.values) != reader.sizes.max_length + offset:
            continue
        rows = view.values[offset : offset + length]
        for name, factor in (("learned", 1.0), ("learned-scaled", width**-0.5)):
            options = {"positional_encoding": name, "position_offset": _first(offset)}
            yield options, {"positions.weight": view}, rows * factor
    yield {"positional_encoding": "none"}, {}, None


def _first(offset: int) -> Value:
    """Return the option of `position_offset` by the row of the first position."""
    return float(offset) if offset else "none"


def logits(reader: Reader, state: State, output: Floats) -> Iterator[Found]:
    """Yield what is known once the generator gives the `output` (B, T, V) of the call."""
    sizes, found = reader.sizes, state.found
    caps: list[Value] = ["none", *(one for one in reader.constants if 1 < one <= 1000)]
    biases: list[View | None] = [*reader.rows(sizes.target_vocabulary), None]
    kinds = ["logits", "log-probabilities", "probabilities"]
    scales = [one.name for one in CHOICES["logit_scale"].options]
    for weight in reader.matrices(sizes.target_vocabulary, sizes.d_model):
        for bias, kind, scale, cap in product(biases, kinds, scales, caps):
            tied = weight.place == found.views["embedding.weight"].place
            options: Options = {
                "generator_bias": "present" if bias else "none",
                "output": kind,
                "logit_scale": scale,
                "logit_cap": cap,
                "tying": "all-three" if tied else "none",
            }
            views = {"weight": weight} | ({"bias": bias} if bias else {})
            after = found.but(options, {f"generator.{name}": one for name, one in views.items()})
            values = {name: one.values for name, one in views.items()}
            given = Setting(sizes, Choices.of({**reader.declared, **options}), values)
            if after and _same(generator(given, state.x), output):
                yield after


def _same(one: Floats, other: Floats) -> bool:
    return bool(np.abs(one - other).max() <= NEAR * max(float(np.abs(other).max()), 1e-30))
