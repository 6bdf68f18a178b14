"""From a decoder-only model to a backend: what is inferred is written as code, and is judged."""

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from types import ModuleType
from typing import Any, NoReturn

import torch

from attentest.targets.adapt.advice.scale_words import demand_documented_scales
from attentest.targets.adapt.assumptions.choices import (
    chosen,
    declared_choices,
    denied_by_call,
)
from attentest.targets.adapt.assumptions.of_limits import of_limits
from attentest.targets.adapt.assumptions.packed_names import exchanged
from attentest.targets.adapt.assumptions.shrunk_gradients import demand_whole_gradients
from attentest.targets.adapt.limits import said_of
from attentest.targets.adapt.parameters.telling import lines, packed
from attentest.targets.adapt.probing import undisturbed
from attentest.targets.adapt.reading import Reading, Unclear
from attentest.targets.adapt.ungiven import sentence, ungiven
from attentest.targets.language_models.beside import question_on_others, unused_of
from attentest.targets.language_models.caching import cache_argument
from attentest.targets.language_models.calls.placings import placings
from attentest.targets.language_models.calls.training import NOT_IN_TRAINING
from attentest.targets.language_models.construction.building import PROBE, Build, Building, building
from attentest.targets.language_models.continuing import with_cache
from attentest.targets.language_models.differing import KEPT_IN_SINGLE, in_turn
from attentest.targets.language_models.inference import Inferred, infer
from attentest.targets.language_models.limits import demand_answer_as_built, limits_of
from attentest.targets.language_models.numbers.epsilons import (
    closest_epsilons,
    epsilons_in_single,
)
from attentest.targets.language_models.numbers.mistakes import Mistake
from attentest.targets.language_models.ordering import BY_CALLER
from attentest.targets.language_models.probing import probe_of, probe_sizes, rounds
from attentest.targets.language_models.profiles import nearest, spoken
from attentest.targets.language_models.questions import windows
from attentest.targets.language_models.questions.labels import demand_loss_of_next, doubts_of_loss
from attentest.targets.language_models.questions.longer import demand_same_beyond
from attentest.targets.language_models.questions.padding import NO_NUMBER, padded_at_end
from attentest.targets.language_models.questions.polarity import (
    demand_documented_order,
    doubts_of_mask,
    forms_meant,
)
from attentest.targets.language_models.questions.sizes import depth_in, other_at_sizes
from attentest.targets.language_models.questions.switches import demand_said_switches
from attentest.targets.language_models.questions.tying import demand_tying
from attentest.targets.language_models.steps.one_by_one import OneByOne
from attentest.targets.language_models.steps.sources import NEW_ALONE, PLACES_GIVEN
from attentest.targets.language_models.surrounded.modules import signature_of
from attentest.targets.language_models.tables import listed
from attentest.targets.language_models.untrained import never_trained
from attentest.targets.language_models.verifying import (
    DEPTH,
    HIDES_NOTHING,
    NO_PADDING,
    TRIED,
    compared,
    difference,
    difference_at,
    hides_nothing,
    padded,
    refused,
)
from attentest.targets.language_models.written import LanguageAdapter
from attentest.targets.origin import origin
from attentest.targets.single import SINGLE
from attentest.targets.whole import AdaptedWhole
from attentest_spec import CHOICES, PAPER, Limits, Place, Unsupported
from attentest_spec.choices import Value
from attentest_spec.profiles import DEFAULT, PROFILES
from attentest_spec.torch import Recipe, TorchBackend, cached_language_model

NOT_MEASURED: Mapping[str, Value] = {"rms_cast": "unspecified", "attention_window": "none"}
"""Choices that no call of the probe shows."""


def adapt_language_model(
    thing: Callable[..., Any],
    reading: Reading,
    name: str,
    home: ModuleType | None,
    build: Build = building,
) -> AdaptedWhole:
    """Return the class of decoder-only models as a backend of the component `language_model`.

    `build` returns how it is built. Raises Unclear, with one question, where it does not say how it
    is built or called, and where no choices give its numbers.
    """
    inferred = windows.with_window(name, infer(thing, name, reading, build), reading)
    choices, profile = _declared(inferred, reading)
    if not reading.anyway:
        demand_answer_as_built(inferred.building, inferred.call, name)
        with undisturbed():
            built = inferred.building(PROBE)
        demand_whole_gradients(name, built, reading)
        demand_tying(name, thing, built, inferred.choices["tying"], reading)
        made = _documented(inferred.building, name)
        demand_documented_order(name, made, inferred.call, reading)
        demand_documented_scales(name, "language_model", made, inferred.choices, reading)
    limits = limits_of(inferred.building, inferred.call, inferred.inner, inferred.table)
    adapter = LanguageAdapter(
        name,
        origin(inferred.building.maker) if inferred.building.maker else origin(thing, home, name),
        inferred.building,
        inferred.call,
        inferred.table,
        choices,
        limits,
        profile,
    )
    if inferred.second:
        adapter = in_turn(adapter, _backend, 1, inferred.second) or _demand_one_layer(adapter)
    others = closest_epsilons(_backend(adapter), reading.choices)
    adapter = replace(adapter, choices={**adapter.choices, **others})
    if inferred.mistake:
        demand_said_switches(inferred, thing, name, reading, build)
        adapter, said = _with_mistake(adapter, inferred.mistake)
        deep = difference_at(_backend(adapter), DEPTH)
        if "it raised" in deep:
            raise other_at_sizes(name, adapter.building, deep)
        return replace(_told(adapter, said, reading), mistaken=inferred.mistaken)
    adapter = _in_precisions(adapter, reading)
    demand_same_beyond(name, _backend(adapter), adapter.building, reading)
    windows.demand_no_window(name, _backend(adapter), adapter.building, reading)
    adapter, doubts = _with_inputs(adapter, inferred, reading)
    more: list[str] = []
    stepwise = isinstance(adapter.call, OneByOne)
    if adapter.call.bare:
        more = [NOT_IN_TRAINING] * bool(cache_argument(adapter.building(PROBE)))
    elif not (adapter.call.order or stepwise or any(NO_PADDING in one for one in doubts)):
        adapter, more = with_cache(adapter, _backend, reading.given)
    more += doubts_of_mask(name, _documented(adapter.building, name), adapter.call, reading)
    unused = _unused(adapter, inferred.arguments.labels)
    if not reading.anyway and inferred.arguments.labels not in reading.given:
        model = probe_of(adapter.building, probe_sizes(adapter.building))
        made = _documented(adapter.building, name)
        more += doubts_of_loss(name, made, model, adapter.call, inferred.arguments.labels)
        if not set(adapter.call.fixed) & set(reading.given):
            demand_loss_of_next(name, model, adapter.call)
    own = epsilons_in_single(_backend(adapter), reading.choices)  # trials were in float64
    adapter = replace(adapter, choices={**adapter.choices, **own})
    return _told(adapter, [*filter(None, [unused]), *doubts, *more], reading)


def _documented(building: Building, name: str) -> type:
    """Return the class whose documentation counts: that of what a function makes."""
    named = building.space.get(name)
    if inspect.isclass(named):
        return named
    with undisturbed():
        return type(building(PROBE))


def _with_mistake(adapter: LanguageAdapter, mistake: Mistake) -> tuple[LanguageAdapter, list[str]]:
    """Return `adapter` by its tokens alone, of which the numbers are wrong; and what is said.

    Nothing else that it takes can be read by its numbers then.
    """
    precisions = adapter.limits.precisions
    if rounds(adapter.building, adapter.call):
        precisions = tuple(one for one in precisions if one != "float64")
    said = (
        f"it computes {mistake.words}{mistake.extent}, and else the numbers of the reference: it "
        f"is judged without the rest of its arguments"
    )
    return replace(adapter, limits=replace(adapter.limits, precisions=precisions)), [said]


def _declared(inferred: Inferred, reading: Reading) -> tuple[dict[str, Value], str]:
    """Return the choices to judge by, and the profile that they are nearest to."""
    unmeasured = {
        name: value
        for name, value in NOT_MEASURED.items()
        if not name.startswith("rms") or inferred.choices["norm_kind"] == "rms"
    }
    held = {**unmeasured, **inferred.choices}
    profile = DEFAULT if reading.strict else nearest(held)
    for name in PROFILES[profile].choices:
        if not name.startswith("rms") or held["norm_kind"] == "rms":
            held.setdefault(name, PAPER[name])
    return declared_choices(held, reading), profile


def _demand_one_layer(adapter: LanguageAdapter) -> NoReturn:
    raise other_at_sizes(adapter.name, adapter.building, difference(_backend(adapter), wide=True))


def _in_precisions(adapter: LanguageAdapter, reading: Reading) -> LanguageAdapter:
    """Return `adapter` with the precisions in which its numbers are the reference's.

    Raises Unclear where they are not in any, at sizes that nothing was inferred from.
    """
    if "float64" in adapter.limits.precisions and not difference(_backend(adapter)):
        return adapter
    found = difference(_backend(adapter), wide=True)
    if found and difference(_backend(adapter), wide=True, room=KEPT_IN_SINGLE):
        windows.demand_no_window(adapter.name, _backend(adapter), adapter.building, reading)
        if not reading.strict and (
            other := in_turn(adapter, _backend, max(0, depth_in(found) - 1), {})
        ):
            return _in_precisions(other, reading)
        raise other_at_sizes(adapter.name, adapter.building, found)
    rest = tuple(one for one in adapter.limits.precisions if one != "float64")
    single = replace(adapter, limits=replace(adapter.limits, precisions=rest))
    found = difference(_backend(single), "float32") if "float32" in rest else ""
    if found:
        raise Unclear(
            f"{adapter.name} was read as a decoder-only model, and in float32 {found}, although "
            f"it agrees with the reference where it is forced to compute in float64: look for what "
            f"it rounds more than that."
        )
    return single


def _with_inputs(
    adapter: LanguageAdapter, inferred: Inferred, reading: Reading
) -> tuple[LanguageAdapter, list[str]]:
    """Return `adapter` with a mask of padding and with positions, where it takes them; and doubts.

    An argument whose name says that it carries one of them is asked about where it does not.
    """
    doubts: list[str] = []
    for own in inferred.arguments.positions[:1]:
        adapter = _with(adapter, own, placings(adapter, own, doubts, _backend), inferred, doubts)
    for own in [one for one in inferred.arguments.masks if one != adapter.call.order][:1]:
        adapter = _with(adapter, own, _maskings(adapter, own, reading), inferred, doubts)
    return adapter, [*doubts, *_complex(adapter)]


def _complex(adapter: LanguageAdapter) -> Iterator[str]:
    """Yield a warning on the first buffer that is complex."""
    with undisturbed():
        model = adapter.building(PROBE)
    for name, one in model.named_buffers():
        if one.is_complex():
            yield (
                f"{name} is a complex buffer: model.to(dtype) discards its imaginary part, without "
                f"an error; judged as model.bfloat16(), .half(), .float() and .double() leave it"
            )
            return


def _with(
    adapter: LanguageAdapter,
    own: str,
    tried: Iterator[tuple[LanguageAdapter, str]],
    inferred: Inferred,
    doubts: list[str],
) -> LanguageAdapter:
    failures, idle = [], own in inferred.arguments.masks
    for other, failure in tried:
        if not failure:
            return other
        failures.append(failure)
        idle = idle and hides_nothing(_backend(other))
    reason = refused(own in inferred.arguments.positions, failures)
    if adapter.call.required != own and reason:
        doubts.append(f"{own} is left out: {reason}")
        return adapter
    if inferred.arguments.is_sure(own):
        without = f"--give {own}=None leaves it out (in Python: given={{'{own}': None}})"
        if adapter.call.required == own:
            without = "a class of your own that gives it one that hides nothing is judged without"
        found = HIDES_NOTHING if idle else failures[0]
        raise Unclear(
            f"{adapter.name} agrees with the reference without {own}, and with it {found}. "
            f"Either that is a mistake, or it carries something else: {without}."
        )
    doubts.append(f"{own} is left out: what it carries is not known")
    return adapter


def _maskings(
    adapter: LanguageAdapter, own: str, reading: Reading
) -> Iterator[tuple[LanguageAdapter, str]]:
    """Yield `adapter` with a mask in each form that may be meant, and what is wrong with it."""
    for form in forms_meant(reading.meaning_of(own)):
        for counted in [one.name for one in CHOICES["padded_positions"].options]:
            other = replace(
                adapter,
                call=replace(adapter.call, mask=own, mask_form=form),
                limits=replace(adapter.limits, masks=("none", "padding")),
                choices={**adapter.choices, "padded_positions": counted},
            )
            calls = [padded("right"), padded("left")]
            found = compared(_backend(other), TRIED[0], calls, wide=True)
            if found.endswith(NO_NUMBER) and not (reading.strict or reading.anyway):
                other = padded_at_end(other)
                calls = [padded("right"), padded("inside")]
                found = compared(_backend(other), TRIED[0], calls, wide=True)
            yield other, found


def _told(adapter: LanguageAdapter, doubts: list[str], reading: Reading) -> AdaptedWhole:
    """Return the backend with all that is said of it."""
    apart = (*reading.choices, *adapter.building.around)
    own = {name: value for name, value in adapter.choices.items() if name not in apart}
    assumptions = [
        f"assumed the choices of {spoken(own, adapter.profile)}, as measured: if you meant "
        f"others, this is a mistake, and --choice NAME=OPTION reports it"
    ]
    assumptions += denied_by_call(own, reading, "language_model", adapter.building)
    assumptions += [BY_CALLER.format(adapter.call.order)] * bool(adapter.call.order)
    assumptions += adapter.building.doubts
    assumptions += [SINGLE] * ("float64" not in adapter.limits.precisions)
    assumptions += never_trained(adapter.building, adapter.call)
    assumptions += [*of_limits(adapter.limits), *windows.windows_left(adapter.building)]
    assumptions += exchanged(probe_of(adapter.building, PROBE), adapter.table)
    assumptions += [PLACES_GIVEN] * (adapter.cached is not None and adapter.cached.places)
    assumptions += [NEW_ALONE] * (getattr(adapter.cached, "joined", None) is not None)
    missing = list(filter(None, [_ungiven(adapter)]))
    said = (
        f"{adapter.name} is judged as language_model",
        *assumptions,
        f"built as {adapter.building.expression}",
        f"arguments: {adapter.call.words}",
        *([f"continued: {adapter.cached.words}"] if adapter.cached else []),
        "parameters:",
        *(f"  {line}" for line in lines(listed(adapter.table))),
        *packed(adapter.table),
        *doubts,
        *chosen(adapter.choices, reading),
        *said_of(adapter.limits),
        *missing,
    )
    summary = "; ".join(
        [
            f"{adapter.name} called ({adapter.call.words})",
            *missing,
            f"read as a decoder-only model by its numbers, {len(listed(adapter.table))} "
            f"parameters of a layer and around",
        ]
    )
    made = _backend(adapter)
    return replace(made, understood=said, assumed=(*assumptions, *doubts), summary=summary)


def _unused(adapter: LanguageAdapter, targets: str) -> str:
    """Return the sentence on parameters that nothing depends on, "" for none.

    Raises Unclear for those of another result, or of an argument that gets no value. `targets` is
    the argument of labels.
    """
    sizes, call = probe_sizes(adapter.building), adapter.call
    model = probe_of(adapter.building, sizes)
    if found := question_on_others(adapter.name, model, call, _left_out(adapter), targets):
        raise Unclear(found)
    return unused_of(probe_of(adapter.building, sizes), call)  # one called before may hold a cache


def _ungiven(adapter: LanguageAdapter) -> str:
    """Return the sentence on the optional arguments that get no value, "" for none."""
    return sentence(_left_out(adapter))


def _left_out(adapter: LanguageAdapter) -> list[str]:
    """Return the optional arguments that get no value."""
    with undisturbed():
        signature = signature_of(adapter.building(PROBE))
    call, cached = adapter.call, adapter.cached
    given = {call.tokens, call.labels, call.mask, call.positions, call.order, *call.fixed}
    given |= {cached.argument, cached.flag, cached.counted} if cached else set()
    return list(ungiven(signature, given))


def _backend(adapter: LanguageAdapter) -> AdaptedWhole:
    """Return the backend that the code of `adapter` defines, run on the live class."""
    space: dict[str, Any] = {
        **adapter.building.space,
        **adapter.call.space,
        "torch": torch,
        "Limits": Limits,
        "Place": Place,
        "Unsupported": Unsupported,
        "Recipe": Recipe,
        "TorchBackend": TorchBackend,
        "cached_language_model": cached_language_model,
    }
    with undisturbed():
        exec(adapter.body(), space)
    made: TorchBackend = space["backend"]
    return AdaptedWhole(
        name=made.name,
        title=made.title,
        recipes=made.recipes,
        choices=made.choices,
        limits=made.limits,
        profile=made.profile,
        adapter=adapter,
    )
