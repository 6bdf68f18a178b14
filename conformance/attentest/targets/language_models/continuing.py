"""The way a decoder-only model is continued from its cache, proved by the numbers of its steps.

A reading is taken where texts that are continued have the numbers of whole texts. Where they have
others, the code is judged if a mistake of the catalogue gives exactly these; otherwise the reading
may be what is wrong, and it is a question.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any

import numpy as np

from attentest.harness.copies import cast
from attentest.results.text import summary
from attentest.targets.adapt.probing import undisturbed
from attentest.targets.adapt.reading import Contrary, Unclear
from attentest.targets.language_models.argument_names import counts, takes_more
from attentest.targets.language_models.caching import (
    Cached,
    cache_argument,
    candidates,
    emptying_calls,
    held_by_model,
    held_by_switch,
)
from attentest.targets.language_models.construction.building import PROBE
from attentest.targets.language_models.held_states import changed_by_calls
from attentest.targets.language_models.steps.first_steps import demand_first_step
from attentest.targets.language_models.steps.known_mistakes import is_known_mistake
from attentest.targets.language_models.steps.own_loops import is_continued_so
from attentest.targets.language_models.steps.trials import (
    COMPONENT,
    Trial,
    drawn_tokens,
    program,
)
from attentest.targets.language_models.verifying import ROOM, TRIED
from attentest.targets.language_models.written import LanguageAdapter
from attentest.targets.single import widened
from attentest_spec import Backend, Choices, Sizes, Unsupported
from attentest_spec.language_model import cached_language_model
from attentest_spec.parameters import draw, learned_positions
from attentest_spec.setting import Setting

BY_HAND = (
    "docs/how-to/add-an-implementation.md shows the three functions that connect a cache by hand"
)

Made = Callable[[LanguageAdapter], Backend]


def with_cache(
    adapter: LanguageAdapter, made: Made, given: Collection[str] = ()
) -> tuple[LanguageAdapter, list[str]]:
    """Return `adapter` with the way in which it is continued, where it has a cache; and doubts.

    `made` returns the backend of an adapter, and `given` are arguments that a user fixes. Raises
    Unclear where steps give numbers that neither the reference nor a mistake of the catalogue
    gives.
    """
    with undisturbed():
        model = adapter.building(PROBE)
    argument = cache_argument(model)
    if not argument:
        ways = (*held_by_model(model), *held_by_switch(model))
        return _held(adapter, made, [one for one in ways if not {one.counted, one.flag} & {*given}])
    model.sizes_of_caches = PROBE
    found = list(candidates(model.eval(), adapter.call, adapter.building.space))
    tried: list[tuple[LanguageAdapter, Trial]] = []
    for one in _variants(found, adapter):
        other = replace(adapter, cached=one)
        trial = _tried(made, other, (3, 1, 1))
        if trial.right():
            _demand_places(other, made)
            return _completed(other, made)
        tried.append((other, trial))
    if argument in given:
        return adapter, [_NOT_CONTINUED.format(argument)]
    demand_first_step(adapter.name, model, adapter.call, adapter.building.space, argument)
    return _wrong(adapter, tried, made, argument, bool(counts(model)) or takes_more(model))


_NOT_CONTINUED = "not judged: {0}, which is fixed as given; its steps do not give the whole text's"


def _held(
    adapter: LanguageAdapter, made: Made, found: Sequence[Cached]
) -> tuple[LanguageAdapter, list[str]]:
    """Return `adapter` with the way in which a model is continued that holds its cache; and doubts.

    One of whose steps nothing before counts has no cache: its number of tokens before is 0.
    """
    counting = any(one.counted for one in found)
    if adapter.call.sequence_first or (adapter.call.labels and counting):
        return adapter, []
    tried = []
    for one in found:
        other = replace(adapter, cached=one)
        trial = _tried(made, other, (3, 1, 1))
        if trial.right():
            return _completed(other, made)
        if _depends_on_earlier(made, other):
            tried.append((other, trial))
    if not tried:
        return adapter, _without_steps(adapter, found)
    for other, trial in tried:
        if trial.begins_right() and is_known_mistake(adapter, trial):
            return replace(other, choices={**adapter.choices, "cache_sessions": "one"}), []
    cached = tried[0][0].cached
    counted, flag = (cached.counted, cached.flag) if cached else ("", "")
    how = f"the number of tokens before as {counted}" if counted else f"{flag}=True"
    own, off = (counted, 0) if counted else (flag, False)
    kind = Unclear if counted else Contrary  # no other reading of its call answers that
    raise kind(
        f"{adapter.name} was read as a decoder-only model that holds its cache itself and is "
        f"continued with {how}, and the output of single tokens after three is not that of the "
        f"whole text. Either that is a mistake, which no known one explains, or its steps "
        f"are called in another way: {BY_HAND}, and --give {own}={off} (in Python: "
        f"given={{'{own}': {off}}}) judges the model without its cache."
    )


def _without_steps(adapter: LanguageAdapter, found: Sequence[Cached]) -> list[str]:
    """Return the doubt on a number of tokens before that continues nothing.

    Raises Unclear for a model that holds something of its calls all the same.
    """
    found = [one for one in found if one.counted]
    held = changed_by_calls(adapter.building, adapter.call) if found else ""
    if held:
        counted = found[0].counted
        raise Unclear(
            f"{adapter.name} holds {held} from one call to the next, and a step with another "
            f"{counted} than 0 does not depend on the tokens before. Either its cache is not read, "
            f"which is a mistake, or its steps are called in another way: {BY_HAND}, and --give "
            f"{counted}=0 (in Python: given={{'{counted}': 0}}) judges the model without its cache."
        )
    return [_NO_STEPS.format(one.counted) for one in found[:1]]


_NO_STEPS = (
    "{} is given as 0: a step with another number does not depend on the tokens before, so no "
    "cache is judged, and if one is meant to be held, this is a mistake"
)


def _variants(found: Sequence[Cached], adapter: LanguageAdapter) -> Iterator[Cached]:
    """Yield the candidates, then those that are given positions in every step."""
    yield from found
    if adapter.call.positions:
        yield from (replace(one, places=True) for one in found)


def _demand_places(adapter: LanguageAdapter, made: Made) -> None:
    """Raise Unclear where steps that are given no positions are not at the first ones either.

    Code that counts positions from the cache, and wrong, is no code that leaves them to its caller.
    """
    cached = adapter.cached
    if cached is None or not cached.places:
        return
    left, first = (
        _tried(made, replace(adapter, cached=one), (3, 1, 1), given=given).actual
        for one, given in (
            (replace(cached, places=False), ""),
            (replace(cached, places=False, positions=True), "first"),
        )
    )
    if left is None or first is None or np.allclose(left, first, 1e-6, 1e-9):
        return
    own = adapter.call.positions
    raise Unclear(
        f"The steps of {adapter.name} with a cache are those of the whole text where {own} is "
        f"given; without it, their tokens are neither at the first positions nor at those after "
        f"the cache. Either that is a mistake, or {own} is given in every step: {BY_HAND}, and "
        f"--give {cached.argument}=None (in Python: given={{'{cached.argument}': None}}) judges "
        f"the model without its cache."
    )


def _completed(adapter: LanguageAdapter, made: Made) -> tuple[LanguageAdapter, list[str]]:
    """Return an adapter whose steps are right with all else that they take; and doubts."""
    cached = adapter.cached
    assert cached is not None
    doubts = []
    if not cached.argument and not learned_positions(Choices.of(adapter.choices)):
        beyond = _tried(made, adapter, (3, 1, 1), sizes=TRIED[0].but(max_length=4))
        if beyond.actual is not None and not beyond.right():
            cached = replace(cached, bounded=True)
            doubts.append(_BOUNDED)
    chunked = _tried(made, adapter, (3, 2))
    if chunked.actual is None or chunked.actual.shape != chunked.expected.shape:
        cached = replace(cached, single=True)
    halves = [one for one in HALVES if one in adapter.limits.precisions]
    kept = [(one, _tried(made, adapter, (3, 1, 1), precision=one)) for one in halves]
    if raising := tuple(one for one, trial in kept if trial.failure and not trial.refused):
        cached = replace(cached, raising=raising)
        doubts.append(_NO_HALVES.format(" and ".join(raising), kept[0][1].failure))
    twice = _tried(made, adapter, (3, 1, 1, 1), after=(-1, 0, 0, 1))
    update = "functional" if not cached.in_place and twice.right() else "in-place"
    for forms, own in (
        (({"mask": "mask"}, {"mask": "mask[:, before:]"}), adapter.call.mask),
        (({"positions": True},), adapter.call.positions),
    ):
        if own:
            cached, doubt = _with_input(replace(adapter, cached=cached), made, forms, own)
            doubts += [doubt] * bool(doubt)
    cached, sessions = _between_texts(replace(adapter, cached=cached), cached, made)
    choices = {**adapter.choices, "cache_update": update, "cache_sessions": sessions}
    whole = replace(adapter, cached=cached, choices=choices)
    _require_everywhere(whole, made)
    return whole, doubts


def _between_texts(adapter: LanguageAdapter, cached: Cached, made: Made) -> tuple[Cached, str]:
    """Return the reading with what it calls before each text, and how many texts may take turns.

    A model that counts the tokens itself has a method that forgets them, which its caller calls.
    """
    if not cached.argument:
        return cached, "one"
    if not _tried(made, adapter, (2, 2, 1, 1), after=(-1, -1, 0, 1)).right():
        with undisturbed():
            calls = [*emptying_calls(adapter.building(PROBE))]
        for other in [replace(cached, emptied=one) for one in calls]:
            trial = _tried(made, replace(adapter, cached=other), (3, 1, 2, 1), after=(-1, 0, -1, 2))
            if trial.right():
                return other, "one"
    return cached, "independent"


def _with_input(
    adapter: LanguageAdapter, made: Made, forms: Sequence[Mapping[str, Any]], own: str
) -> tuple[Cached, str]:
    """Return the reading whose steps take the argument `own` in one of the forms; and a doubt.

    Raises Unclear where steps take it and have other numbers, which no known mistake gives.
    """
    cached = adapter.cached
    assert cached is not None
    trials = []
    for form in forms:
        other = replace(cached, **form)
        trial = _tried(made, replace(adapter, cached=other), (4, 1, 1), given=next(iter(form)))
        if (
            trial.right()
            and "mask" in form
            and _counts_tokens(replace(adapter, cached=other), made)
        ):
            return cached, f"{own} is left out of steps with a cache: {_COUNTED}"
        if trial.right() or is_known_mistake(adapter, trial):
            return other, ""
        trials.append(trial)
    if all(trial.actual is None for trial in trials):
        return cached, f"{own} is left out of steps with a cache: {trials[0].failure}"
    raise Unclear(
        f"The steps of {adapter.name} with a cache are right without {own}, and with it their "
        f"output is not that of the whole text. Either that is a mistake, or it carries something "
        f"else there: {BY_HAND}, and --give {own}=None (in Python: given={{'{own}': None}}) leaves "
        f"it out."
    )


HALVES = ("bfloat16", "float16")
_NO_HALVES = (
    "its steps with a cache are not judged in {}: {}, and if they are meant to work there, this "
    "is a mistake"
)
_BOUNDED = (
    "assumed that its cache is given no more tokens than it is made for: it takes those beyond "
    "without an error, and their output is wrong, which is a mistake if a caller may give them"
)
_COUNTED = "its biases of distances count no padding between tokens, and those of the spec do"


def _counts_tokens(adapter: LanguageAdapter, made: Made) -> bool:
    """Say whether biases of distances differ where there is padding between a prompt and steps.

    They are those of columns in the spec; code that counts the tokens of a mask has others.
    """
    if adapter.choices.get("relative_bias", "none") == "none":
        return False
    trial = _tried(made, adapter, (4, 1, 1), given="gap")
    return not trial.right() and not is_known_mistake(adapter, trial)


def _require_everywhere(adapter: LanguageAdapter, made: Made) -> None:
    """Raise Unclear where steps have other numbers at sizes that the reading was not found at."""
    precision = next(one for one in ROOM if one in adapter.limits.precisions)
    for sizes in TRIED:
        trial = _tried(made, adapter, (3, 1, 1), sizes=sizes, precision=precision)
        if not trial.right(ROOM[precision]):
            how = trial.failure or "the output of its steps is not that of the whole text"
            raise Unclear(
                f"{adapter.name} was read as a decoder-only model that is continued from "
                f"{adapter.cached.argument if adapter.cached else 'a cache'}, and in {precision}, "
                f"with {sizes.layers} layers of width {sizes.d_model} and {sizes.heads} heads, "
                f"{how}. Either that is a mistake which shows at some sizes alone, or the cache is "
                f"made in another way; {BY_HAND}."
            )


def _wrong(
    adapter: LanguageAdapter,
    tried: Sequence[tuple[LanguageAdapter, Trial]],
    made: Made,
    argument: str,
    counts_before: bool,
) -> tuple[LanguageAdapter, list[str]]:
    """Return the adapter whose steps have the numbers of a known mistake; else ask, or leave it."""
    sure = [
        (other, trial)
        for other, trial in tried
        if other.cached is not None
        and (not other.cached.in_place or _depends_on_earlier(made, other))
    ]
    for other, trial in sure:
        sure_steps = other.cached and (other.cached.counted or not counts_before)
        if sure_steps and trial.begins_right() and is_known_mistake(adapter, trial):
            return replace(other, choices={**adapter.choices, "cache_sessions": "independent"}), []
    asked = next((one for one in sure if one[1].begins_right()), next(iter(sure), None))
    if asked is None:
        return adapter, [f"{argument} is left out: how its cache is made is not known; {BY_HAND}"]
    other, trial = asked
    model, cached = type(adapter.building(PROBE)), other.cached
    if cached and trial.actual is not None and is_continued_so(model, cached, adapter.call.tokens):
        return replace(other, choices={**adapter.choices, "cache_sessions": "independent"}), []
    reading = other.cached.words if other.cached else ""
    how = trial.failure or (
        "the output of single tokens after three is not that of the whole text, and no known "
        "mistake gives it"
    )
    raise Unclear(
        f"{adapter.name} was read as a decoder-only model that is continued from a cache "
        f"({reading}), and {how}. Either that is a mistake, or its steps are called in another "
        f"way: {BY_HAND}, and --give {argument}=None (in Python: given={{'{argument}': None}}) "
        f"judges the model without its cache."
    )


def _tried(
    made: Made,
    adapter: LanguageAdapter,
    chunks: Sequence[int],
    *,
    after: Sequence[int] = (),
    given: str = "",
    sizes: Sizes = TRIED[0],
    precision: str = "",
    moved: bool = False,
) -> Trial:
    """Return the trial of one program; in double precision whatever code asks for by default.

    `given` is "mask" or "positions" where the program has one, "gap" for a mask of padding after
    the first chunk, and "first" for chunks whose positions begin at 0. `moved` exchanges the
    tokens of the first chunk.
    """
    backend = made(adapter)
    fitted = backend.limits.fitted(sizes)
    choices = Choices.of(backend.choices)
    if choices.key_heads != "fewer":
        fitted = fitted.but(kv_heads=0)
    parameters = draw(COMPONENT, fitted, choices, np.random.default_rng(1))
    tokens = drawn_tokens(fitted, sum(chunks))
    if moved:
        tokens[:, : chunks[0]] = (tokens[:, : chunks[0]] + 1) % fitted.target_vocabulary
    inputs = program(tokens, chunks, after, given)
    expected = cached_language_model(Setting(fitted, choices, parameters), *inputs)
    around: AbstractContextManager[None] = undisturbed() if precision else widened()
    held = precision or "float64"
    try:
        with around:
            part = backend.build(COMPONENT, fitted, precision=held)
            part.load({name: cast(one, held) for name, one in parameters.items()})
            actual = np.asarray(part(*inputs), dtype=np.float64)
    except Unsupported as refusal:
        return Trial(fitted, inputs, expected, failure=str(refusal), refused=True)
    except Exception as failure:  # code that a user wrote may raise anything
        return Trial(fitted, inputs, expected, failure=f"it raised {summary(failure, 120)}")
    return Trial(fitted, inputs, expected, actual)


def _depends_on_earlier(made: Made, adapter: LanguageAdapter) -> bool:
    """Say whether other tokens in the first chunk change what comes after it."""
    one = _tried(made, adapter, (3, 1, 1))
    other = _tried(made, adapter, (3, 1, 1), moved=True)
    if one.actual is None or other.actual is None or one.actual.shape != other.actual.shape:
        return False
    return not np.allclose(one.actual[:, 3:], other.actual[:, 3:], 1e-6, 1e-9)
