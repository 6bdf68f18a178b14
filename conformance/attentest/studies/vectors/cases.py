"""The cases: every recipe under the given choices, and under every other option that it shows."""

import zlib
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import islice
from typing import Any, cast

import numpy as np
from hypothesis import strategies as st

from attentest.harness.oracle import Reference
from attentest.harness.subject import Answer, Probe, Subject
from attentest.harness.tolerances import distance, error_bound
from attentest.studies.vectors.language import language
from attentest.studies.vectors.recipes import Given, Recipe, recipes
from attentest.studies.vectors.stacks import stacks
from attentest.studies.vectors.turning import turning
from attentest.testing.draw import Draw
from attentest_spec import CHOICES, COMPONENTS, Choices, Sizes
from attentest_spec.choices import Value
from attentest_spec.choices.attention import ATTENTION
from attentest_spec.components import inside
from attentest_spec.setting import Array, Floats

PRECISIONS = ("float64", "float32")
"""The precisions of the inputs; what is expected is float64 always."""

_NUMBERS = (0.0, 1e-3, -3.0, 2.0)
"""Candidates for a choice that takes a number: those that it allows are options."""


@dataclass(frozen=True)
class Expected:
    """One array that has to come out, and how far from it rounding may lead.

    `rows` are the leading axes at which it is judged (None: everywhere), `optional` is what an
    implementation need not return.
    """

    name: str
    array: Array
    absolute: float
    rows: Array | None = None
    optional: bool = False


@dataclass(frozen=True)
class Case:
    """One call: what goes in, under which choices, and what has to come out."""

    name: str
    recipe: Recipe
    clause: str
    sizes: Sizes
    choices: Choices
    precision: str
    parameters: Mapping[str, Floats]
    given: Given
    expected: tuple[Expected, ...]


def cases(components: Collection[str], choices: Choices, seed: int, count: int) -> Iterator[Case]:
    """Yield the cases of `components`, every recipe with `count` draws of its numbers."""
    for component in components:
        own = [
            one
            for one in (*recipes(), *stacks(), *turning(), *language())
            if one.component == component
        ]
        for number in range(count):
            for precision in PRECISIONS:
                yield from _plain(own, choices, precision, seed, number)
        yield from _options(own, choices, seed)


def _plain(
    own: Iterable[Recipe], choices: Choices, precision: str, seed: int, number: int
) -> Iterator[Case]:
    for recipe in own:
        call = _Call(recipe, choices, precision, (seed, number))
        if call.answered() and (precision == "float64" or _computes(recipe)):
            name = f"{recipe.component}/{recipe.name}/{precision}"
            yield call.case(name if number == 0 else f"{name}/{number}", recipe.clause)


def _computes(recipe: Recipe) -> bool:
    """Say whether the component has numbers to compute in a precision; masks have none."""
    return COMPONENTS[recipe.component].chapter not in ("masks", "batch")


_SHOWN_WITH: Mapping[str, Mapping[str, Value]] = {
    "rotary_partial": {"rotary_width": 0.5},
    "query_alignment": {"attention_causality": "built-in"},
    "query_key_norm_place": {"attention_rotary": "query-and-key", "query_key_norm": "per-head"},
}
"""Other choices with which a choice shows at all."""

_INSIDE = frozenset(one.name for one in ATTENTION)
"""Choices that attention shows: whatever is made of layers does not repeat them."""


def _options(own: list[Recipe], base: Choices, seed: int) -> Iterator[Case]:
    """Yield, for every option but the base's, a case of every recipe that shows it."""

    @cache
    def plain(start: Choices) -> list[tuple[_Call, Collection[str]]]:
        return [_watched(one, start, seed) for one in own]

    for name, value in options():
        start = base.but(**_SHOWN_WITH.get(name, {}))
        if name in _INSIDE and _layered(own):
            continue
        if value == base[name] or (chosen := _with(start, name, value)) is None:
            continue
        told = f"{value:g}" if isinstance(value, float) else value
        shown = (
            call.case(f"{one.component}/{one.name}/{name}={told}", CHOICES[name].clause)
            for other, known in plain(start)
            if name in known  # what was not looked up changes nothing
            and (call := _Call(one := other.recipe, chosen, "float64", (seed, 0))).answered()
            and call.differs(other)
        )
        # What is made of layers is large, and its parts have shown the rest; what later models
        # have inside attention is shown by a few recipes.
        yield from islice(shown, 1 if _layered(own) else 3 if name in _INSIDE else None)


def _watched(recipe: Recipe, choices: Choices, seed: int) -> tuple["_Call", Collection[str]]:
    """Return a call that was carried out, and the names of the choices that it looked up."""
    names: set[str] = set()

    class Watched(Choices):
        def __getattribute__(self, name: str) -> Any:
            names.add(name)
            return super().__getattribute__(name)

    watched = Watched(**choices.as_dict())  # type: ignore[arg-type]
    names.clear()
    call = _Call(recipe, watched, "float64", (seed, 0), backend=Reference(choices))
    call.answered()
    return call, frozenset(names)


def _layered(own: Iterable[Recipe]) -> bool:
    parts = {"residual", "multi_head_attention"}
    return any(parts & (inside(one.component) - {one.component}) for one in own)


def options() -> Iterator[tuple[str, Value]]:
    """Yield every option of every choice, and numbers for those that take one."""
    for name, choice in CHOICES.items():
        yield from ((name, option.name) for option in choice.options)
        if choice.number:
            numbers = dict.fromkeys([*_NUMBERS, choice.default])
            yield from ((name, one) for one in numbers if isinstance(one, float))


def _with(base: Choices, name: str, value: Value) -> Choices | None:
    """Return `base` with an option in it; None for a number that the choice does not take."""
    try:
        return base.but(**{name: value})
    except ValueError:
        return None


class _Call:
    """A recipe carried out under some choices, with one draw of its numbers."""

    def __init__(
        self,
        recipe: Recipe,
        choices: Choices,
        precision: str,
        seed: tuple[int, ...],
        backend: Reference | None = None,
    ) -> None:
        self.recipe = recipe
        self.choices = choices
        self.precision = precision
        self.sizes = recipe.fitted(choices)
        backend = backend or Reference(choices)
        subject = Subject(backend, choices=choices, precision=precision)
        place = zlib.crc32(f"{recipe.component}/{recipe.name}".encode())
        source = np.random.default_rng([*seed, place])
        # Sizes and kinds are the recipe's: nothing is asked of Hypothesis.
        draw = Draw(cast(st.DrawFn, None), subject, source)
        self.given = recipe.make(draw, self.sizes)
        self.parameters = draw.parameters(recipe.component, self.sizes)
        self._bounds: dict[int, float] = {}
        self.probe: Probe = subject.part(recipe.component, self.sizes, parameters=self.parameters)

    @cached_property
    def answers(self) -> tuple[Array, ...]:
        """Return what the oracle returns: the output, and weights beside it."""
        found = self.probe.expected(*self.given.inputs, method=self.recipe.method)
        if COMPONENTS[self.recipe.component].chapter == "batch":
            return (found.output,)
        return tuple(array for array in found if array is not None)

    def judged(self, array: Array) -> Array:
        """Return the rows that are judged, out of an output or a gradient."""
        rows = self.given.rows
        return array if rows is None else np.asarray(array[rows])

    def answered(self) -> bool:
        """Say whether there is an answer: without an epsilon a constant row has none.

        Nor is there one where the reference has no formula, as for causality that is built in where
        queries and keys differ in number.
        """
        if not self.recipe.when(self.choices):
            return False
        try:
            answer = self.answers[0]
        except ValueError:
            return False
        return self.recipe.nan or bool(np.isfinite(self.judged(answer)).all())

    def differs(self, base: "_Call") -> bool:
        """Say whether the output is another than that of `base`, beyond all rounding."""
        if not base.answered():
            return True
        mine, other = self.judged(self.answers[0]), base.judged(base.answers[0])
        return mine.shape != other.shape or distance(mine, other) > base.bound(0)

    def bound(self, number: int) -> float:
        """Return the error that sound code may make in the answer `number`, as the suite does."""
        if number not in self._bounds:
            self._bounds[number] = self._bound(number)
        return self._bounds[number]

    def _bound(self, number: int) -> float:
        def pick(answer: Answer) -> Array | None:
            array = answer[number]
            return None if array is None else self.judged(array)

        wanted = self.answers[number]
        if wanted.dtype.kind != "f":  # masks and tokens are exact
            return 0.0
        return error_bound(
            self.probe,
            self.given.inputs,
            self.judged(wanted),
            method=self.recipe.method,
            pick=pick,
        )

    def case(self, name: str, clause: str) -> Case:
        """Return the call with what has to come out."""
        expected = tuple(
            Expected(what, array, self.bound(number), self.given.rows, optional=number > 0)
            for number, (what, array) in enumerate(zip(_ANSWERS, self.answers, strict=False))
        )
        return Case(
            name,
            self.recipe,
            clause,
            self.sizes,
            self.choices,
            self.precision,
            self.parameters,
            self.given,
            expected,
        )


_ANSWERS = ("output", "weights")
