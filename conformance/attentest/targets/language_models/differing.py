"""Decoder-only models whose layers differ in turn: every n-th has other positions, or none."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from attentest.targets.language_models.verifying import DEPTH, TRIED, answers, drawn, tokens_at
from attentest.targets.language_models.written import LanguageAdapter
from attentest_spec import Backend
from attentest_spec.choices import Choices, Value
from attentest_spec.generator import generator
from attentest_spec.language_model import causal_layer, embed
from attentest_spec.norm import norm
from attentest_spec.setting import Array, Floats, Setting

OWN = ("attention_rotary", "rotary_")
"""The beginnings of the choices in which layers may differ."""

_BASES = (1e4, 1e5, 1.5e5, 1.6e5, 5e5, 1e6, 5e6, 8e6, 1e7)
"""The bases of rotary positions that published models have."""

KEPT_IN_SINGLE = 3e-7
"""Difference that a table makes which is kept in single precision from one call to the next."""

_DEPTHS = (DEPTH, 5, 6, 7, 8)
"""The numbers of layers at which all of them are compared."""


@dataclass(frozen=True)
class Differing:
    """The `other` choices of some layers: of each whose number leaves `rest` divided by `every`.

    Where `but` is True these are all layers but those.
    """

    other: Mapping[str, Value]
    every: int
    rest: int
    but: bool = False

    def of(self, number: int) -> bool:
        """Say whether the layer `number`, counted from 0, has the other choices."""
        return (number % self.every == self.rest) != self.but

    @property
    def words(self) -> str:
        """The assumption, with the number of layers that clauses are judged with."""
        numbers = [number for number in range(DEPTH) if self.of(number)]
        named = f"{', '.join(map(str, numbers[:3]))}{', ..' * (len(numbers) > 3)}"
        options = ", ".join(f"{name}={value}" for name, value in self.other.items())
        most = numbers[0]
        return (
            f"assumed that layers differ by their number, as measured with {DEPTH}: those of the "
            f"numbers {named}, counted from 0, have {options}. Clauses are judged with up to "
            f"{most} layer{'s' * (most > 1)}; if one layer is meant for all, this is a mistake"
        )


def in_turn(
    adapter: LanguageAdapter,
    made: Callable[[LanguageAdapter], Backend],
    first: int,
    found: Mapping[str, Value],
) -> LanguageAdapter | None:
    """Return `adapter` with as many layers as there are before others, in turn; None for no turns.

    The layer of the number `first` is the first one with other choices. These are `found`, or tried
    where there are none. `made` returns the backend of an adapter.
    """
    way = _differing(made(adapter), first, found) if first else None
    if way is None:
        return None
    return replace(
        adapter,
        building=replace(adapter.building, doubts=(*adapter.building.doubts, way.words)),
        limits=replace(adapter.limits, layers=first),
    )


def _differing(backend: Backend, first: int, found: Mapping[str, Value]) -> Differing | None:
    """Return how layers differ in turn, None where no such turns have the numbers of the code."""
    known = Choices.of(backend.choices)
    for other in [found] if found else _others(known):
        if not _same(backend, Differing(other, DEPTH, first), first + 1):
            continue
        ways = [Differing(other, every, first) for every in range(first + 1, DEPTH - first)]
        if first == 1:
            ways += [Differing(other, every, 0, but=True) for every in range(3, 7)]
        for way in ways:
            if not _apart(backend, way):
                return way
    return None


def _others(known: Choices) -> Iterator[Mapping[str, Value]]:
    if known.attention_rotary == "none":
        return
    yield {"attention_rotary": "none"}
    yield from ({"rotary_base": base} for base in _BASES if base != known.rotary_base)


def _apart(backend: Backend, way: Differing) -> bool:
    """Say whether the numbers of the code are others than those of layers that differ so."""
    return any(not _same(backend, way, depth) for depth in _DEPTHS)


def _same(backend: Backend, way: Differing, layers: int) -> bool:
    given, tokens = drawn(backend, TRIED[0].but(layers=layers)), tokens_at(TRIED[0], 7)
    try:
        (actual,) = answers(backend, given, [(tokens, None, None)])
    except Exception:  # code that a user wrote may raise anything
        return False
    expected = _by_layer(given, way, tokens)
    same = np.abs(actual - expected).max() <= KEPT_IN_SINGLE * np.abs(expected).max()
    return actual.shape == expected.shape and bool(same)


def _by_layer(given: Setting, way: Differing, tokens: Array) -> Floats:
    """Return the output (B, T, V) of the reference for tokens (B, T), with layers that differ."""
    places = np.broadcast_to(np.arange(tokens.shape[1]), tokens.shape)
    choices = Choices.of({**vars(given.choices), **way.other})
    x = embed(given, tokens, places)
    for number in range(given.sizes.layers):
        layer = given.under(f"layers.{number}")
        own = replace(layer, choices=choices) if way.of(number) else layer
        x = causal_layer(own, x, None, places)
    if given.choices.final_norm == "present":
        x = norm(given.under("norm"), x)
    return generator(given.under("generator"), x)


def own_choices(choices: Mapping[str, Value]) -> dict[str, Value]:
    """Return those of the `choices` in which layers may differ."""
    return {name: one for name, one in choices.items() if name.startswith(OWN)}
