"""From a function or a class to a backend: everything that is inferred is said."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from types import ModuleType
from typing import Any

import torch
from torch import nn

from attentest.analysis.identify import identify
from attentest.harness.reproduction import Action
from attentest.targets import caches
from attentest.targets.adapt import calling, options, probing, trust
from attentest.targets.adapt.adapter import Adapter, unread_methods
from attentest.targets.adapt.advice.head_numbers import with_number_of_heads
from attentest.targets.adapt.advice.own_order import mask_beside_order
from attentest.targets.adapt.advice.plain_norms import of_its_numbers
from attentest.targets.adapt.advice.scale_words import demand_documented_scales
from attentest.targets.adapt.advice.switches_off import with_switches_off
from attentest.targets.adapt.advice.trials import answered, switched
from attentest.targets.adapt.arrays import read_by_library
from attentest.targets.adapt.assumptions.choices import (
    IDLE_DROPOUT,
    assumed_of_code,
    chosen,
    declared_choices,
    guess_of,
    measured,
    summary,
    unusual,
)
from attentest.targets.adapt.assumptions.devices import limited
from attentest.targets.adapt.assumptions.epsilons import given_for_none
from attentest.targets.adapt.assumptions.of_limits import of_limits
from attentest.targets.adapt.assumptions.packed_names import exchanged
from attentest.targets.adapt.assumptions.precisions import single_alone
from attentest.targets.adapt.assumptions.shrunk_gradients import demand_whole_gradients
from attentest.targets.adapt.assumptions.unread import with_unread
from attentest.targets.adapt.assumptions.uses import limited_by_use
from attentest.targets.adapt.code import Code, code_of, of_instance
from attentest.targets.adapt.components import component_guessed, component_named
from attentest.targets.adapt.encoders.embedded import entering_of
from attentest.targets.adapt.encoders.inverted import with_tokens_seen
from attentest.targets.adapt.encoders.mask_uses import read_around
from attentest.targets.adapt.encoders.otherwise import explained_otherwise
from attentest.targets.adapt.encoders.part_mistake import demand_usual
from attentest.targets.adapt.encoders.tokens import stack_of
from attentest.targets.adapt.limits import (
    built,
    ignores_dropout,
    is_random_without_dropout,
    limits_measured,
    limits_of,
    said_of,
)
from attentest.targets.adapt.losses.adaptation import adapt_loss
from attentest.targets.adapt.makers import maker, several
from attentest.targets.adapt.parameters import FoundTable, interleaved, routing
from attentest.targets.adapt.parameters.given import check_places
from attentest.targets.adapt.parameters.held import shapes_held, table_of_code
from attentest.targets.adapt.probing import Probe
from attentest.targets.adapt.reading import (
    BY_RECIPE,
    LAYER,
    OBJECT,
    Offered,
    Reading,
    Unclear,
    Uncovered,
    question_of_calls,
)
from attentest.targets.adapt.rotary.adaptation import adapt_rotary, is_rotary, of_class
from attentest.targets.adapt.training import optimisers, schedules
from attentest.targets.adapt.training.batches import adapt_batch
from attentest.targets.adapt.ungiven import ungiven_of
from attentest.targets.adapt.unspecified.buckets import demand_buckets
from attentest.targets.adapt.unspecified.sampling import demand_calls_alone
from attentest.targets.adapt.unspecified.windows import with_window_left
from attentest.targets.adapt.wrappers.applied import applied_by_caller
from attentest.targets.adapt.wrappers.around import without_the_rest
from attentest.targets.adapt.wrappers.core import rounds, without_norm
from attentest.targets.adapt.wrappers.networked import network_of_gate
from attentest.targets.adapt.wrappers.own_norms import with_one_epsilon, with_own_norms
from attentest.targets.adapt.wrappers.packed import packed_by_caller
from attentest.targets.adapt.wrappers.projected import completed
from attentest.targets.adapt.wrappers.turning import turned_by_caller
from attentest.targets.adapt.wrappers.wrapper import fitting
from attentest.targets.adapt.writing.backend import Written
from attentest.targets.adapt.writing.script import Script
from attentest.targets.constants import components as constants
from attentest.targets.language_models.adaptation import adapt_language_model
from attentest.targets.language_models.recognition import is_language_model
from attentest.targets.language_models.surrounded.adaptation import adapt_surrounded
from attentest.targets.libraries import of_tensors
from attentest.targets.models import adaptation as whole
from attentest.targets.nearest import nearest
from attentest.targets.searches import adaptation as searches
from attentest.targets.signatures import without_forward
from attentest.targets.single import is_explained
from attentest_spec import Backend, Choices
from attentest_spec.torch import Recipe, TorchBackend


@dataclass(frozen=True, kw_only=True)
class Adapted(TorchBackend):
    """A backend made of code that was not written for the contract.

    `understood` are the sentences that say how the `code` was read, `assumed` those of them that
    may be wrong, and `summary` is one line with the rest. `fits` says that the numbers are those
    of the formula under some options.
    """

    understood: tuple[str, ...] = ()
    assumed: tuple[str, ...] = ()
    summary: str = ""
    fits: bool = True
    code: Code

    def reproduction_script(self, actions: Sequence[Action]) -> str:
        """Return code that repeats `actions` on the user's own code, with nothing between."""
        return Script(self.code, self.recipes[self.code.component].call).text(actions)

    def written(self) -> str:
        """Return the adapter as the text of a Python file."""
        recipe = self.recipes[self.code.component]
        table, choices = recipe.parameters, dict(self.choices)
        adapter = Written(self.code, recipe.call, table, choices, self.limits)  # type: ignore[arg-type]
        return adapter.text(self.understood)


def adapt(
    thing: Any, reading: Reading | None = None, name: str = "", home: ModuleType | None = None
) -> Backend:
    """Return `thing`, a function, class or instance, as a backend; a backend stays what it is.

    `home` is the module in which it is called `name`, None for a live object.
    Raises Unclear, with what to add, where the code does not say how it is built or called.
    """
    if isinstance(thing, Backend) and not inspect.isclass(thing):
        return thing
    asked = reading or Reading()
    probing.MISSING.clear()
    read_as = of_its_numbers(lambda one, asked: _adapt(one, asked, name, home), name)

    def read(reading: Reading) -> Backend:
        return read_by_library(thing, reading, lambda one: read_as(one, reading))

    def read_around(reading: Reading) -> Backend:
        try:
            return read(reading)
        except Unclear as question:
            return adapt_surrounded(question, thing, reading, name, home, read)

    try:
        made = with_number_of_heads(read_around(asked), asked, read_around)
        return limited_by_use(with_unread(made, thing), asked, thing)
    except Unclear as question:
        if other := without_forward(thing):
            raise Unclear(other) from question
        switched(question, with_switches_off(thing, asked, question), asked, read_around)
        return limited_by_use(answered(question, thing, asked, read), asked, thing)


def _adapt(thing: Any, asked: Reading, name: str, home: ModuleType | None) -> Backend:
    if is_rotary(thing, asked, name):
        with probing.undisturbed():
            return adapt_rotary(thing, asked, name, home)
    if schedules.is_schedule(thing, asked, name):
        with probing.undisturbed():
            return schedules.adapt_schedule(thing, asked, name, home)
    if trained := optimisers.component_of(thing, asked, name):
        with probing.undisturbed():
            return optimisers.adapt_optimiser(thing, trained, asked, name, home)
    instance = thing if isinstance(thing, nn.Module) else None
    made, called = (thing, name) if instance is None else (type(thing), type(thing).__name__)
    if is_language_model(made, asked, called):
        if instance is not None:
            raise Unclear(OBJECT.format(called))
        return adapt_language_model(of_tensors(made), asked, called or made.__name__, home)
    own_name = called or getattr(thing, "__name__", "")
    named = asked.component or component_named(own_name)
    if not named and searches.is_search(guessed := searches.guessed(thing, own_name)):
        named = guessed
    if searches.is_search(named):
        return searches.adapt_search(thing, named, called or thing.__name__, home, asked)
    if caches.is_cache(thing, asked, own_name):
        with probing.undisturbed():
            if kept := caches.adapt_cache(thing, asked, own_name):
                return kept
        named = caches.COMPONENT
    if several.makes_several(own_name, thing, asked):
        return several.adapt_several(thing, asked, own_name, home)
    if named in BY_RECIPE:
        raise Unclear(question_of_calls(named, own_name))
    if named == "causal_layer":
        raise Uncovered(LAYER.format(own_name))
    stack = stack_of(made, asked, called)
    if stack is None and whole.is_model(made, asked, called):
        where = home if instance is None else None
        read = partial(_adapt, asked=Reading(), name="", home=None)
        return whole.adapt_class(made, asked, called or made.__name__, where, read, instance)
    stack = of_instance(instance, stack) if stack and instance is not None else stack
    own = name or getattr(thing, "__name__", type(thing).__name__)
    guess = "" if asked.component or component_named(own) else component_guessed(own)
    try:
        code = stack or code_of(thing, asked, name)
        if code.component == "rotary":  # by some words of a name, or of an object's class
            with probing.undisturbed():
                return adapt_rotary(of_class(thing, code.name), asked, own, home)
        if code.thing is thing:  # an instance may stand for its class, which is found by itself
            code = replace(code, home=home)
        options.demand_known_arguments(code, asked)
        with probing.undisturbed():
            found = constants.read_by(_READERS.get(code.component, _adapted), code, asked)
            return with_tokens_seen(found, stack, asked)
    except Unclear as failure:
        if (around := read_around(failure, stack, asked, _adapted)) is not None:
            return around
        if not guess or isinstance(failure, Offered | Uncovered):
            raise
        raise Unclear(
            f"{failure.text} A part of the name {own!r} says that it is {guess}.",
            "If it is another component, or to have it judged as that, add --as COMPONENT.",
            attempts=failure.attempts,
            taken=guess,
            built=failure.built,
        ) from failure


def _making(code: Code, reading: Reading) -> Adapted:
    """Return a function that makes masks as a backend."""
    made = maker.making(Probe(built(code, torch.float64)), code, reading)
    said = (f"{code.name} is judged as {code.component}", *made.assumed, *code.said, *made.said)
    return Adapted(
        name=code.name,
        title=f"{code.name}, read as {code.component}",
        recipes={code.component: Recipe(code.build, made.call)},
        limits=made.limits,
        code=code,
        understood=said,
        assumed=made.assumed,
        summary=summary(code, made.call.adapter),
    )


@dataclass(frozen=True)
class _Inferred:
    """The inferred facts about code, before its numbers are compared."""

    backend: Adapted
    probe: Probe
    adapter: Adapter
    found: FoundTable
    said: list[str]


def _inferred(code: Code, reading: Reading) -> _Inferred:
    probe, adapter, said = calling.adapter_of(code, reading)
    code, probe = with_window_left(code, probe, adapter, reading)
    if not reading.anyway:
        demand_calls_alone(code, probe, adapter)
        demand_whole_gradients(code.name, probe.built, reading)
    check_places(code, probe, reading)
    found = table_of_code(code, probe, adapter, reading)
    demand_buckets(code, found.table)
    if found.interleaved and reading.strict:
        raise Unclear(interleaved.QUESTION.format(code.name, code.component))
    several = trust.needs_several_heads(code, found)
    limits = limits_of(code, probe, adapter, found.table, several=several)
    if code.wrapper is not None and code.wrapper.options.get("residual"):
        limits = replace(limits, precisions=("float64",))  # a difference of sums is rounded
    one = "kv_heads" not in code.known and found.choices.get("key_heads") == "fewer"
    limits = replace(limits, one_key_head=one)
    fixed = not reading.strict and is_random_without_dropout(probe, adapter)
    methods = unread_methods(code.component)
    backend = Adapted(
        name=code.name,
        title=f"{code.name}, read as {code.component}",
        recipes={code.component: Recipe(code.build, adapter, methods, found.table)},
        choices={**found.choices, **reading.choices},
        limits=replace(limits, dropout=limits.dropout and not fixed, fixed_dropout=fixed),
        code=code,
    )
    return _Inferred(backend, probe, adapter, found, said)


def _explained(default: _Inferred, reading: Reading) -> bool:
    """Say whether code computes its component with other settings than those it was read with.

    They have to leave its parameters as they are: without a bias, nothing is wrong with the bias.
    """
    code = default.backend.code
    try:
        other = _inferred(code_of(code.thing, reading, code.name), reading)
        return shapes_held(other.probe) == shapes_held(default.probe) and is_explained(
            other.backend
        )
    except Exception:  # code that a user wrote may raise anything
        return False


def _adapted(code: Code, reading: Reading) -> Adapted:
    for by_caller in (turned_by_caller, applied_by_caller, network_of_gate, packed_by_caller):
        if (made := by_caller(code, reading, _adapted)) is not None:
            return made
    inferred = _inferred(code, reading)
    backend, probe, said = inferred.backend, inferred.probe, inferred.said
    code, adapter, found = backend.code, inferred.adapter, inferred.found
    other = completed(code, probe, adapter.returns, found, reading)
    if other := other or with_own_norms(code, adapter, found, reading):
        return _adapted(other, reading)
    cores = without_norm(code, probe, adapter, found, reading)
    rows = without_the_rest(code, probe, adapter, reading)
    for other in (*cores, *rows, *with_one_epsilon(code, found, reading)):
        if (core := fitting(other, reading, _adapted)) and not rounds(other, core.choices):
            return core
    if not reading.anyway and (unmasked := mask_beside_order(code, probe, adapter)):
        made = _adapted(code, replace(reading, given={**reading.given, unmasked[0]: None}))
        return limited(made, made.limits, unmasked[1])
    findings = identify(backend)
    single = None if reading.strict else single_alone(backend, probe, adapter, found, findings)
    if single:
        backend, findings = replace(backend, limits=single.limits), single.findings
    found = routing.settled(code, adapter, found, findings)
    explained = known = trust.explained(findings)
    guessed = not (reading.component or component_named(code.name))
    if not explained:
        found, known = explained_otherwise(adapter, found, findings, reading, guessed=guessed)
    shown = {**found.choices, **measured(findings)}

    def line() -> str:
        return nearest(replace(backend, choices=declared_choices(shown, reading)), code.component)

    if not (reading.anyway or explained):
        options.demand_default(code, reading, partial(_explained, inferred), found.table)
    ask = partial(trust.question, code, probe, adapter, found, findings, line, reading)
    if guessed and not (known or reading.anyway or reading.strict):
        demand_usual(code.name, adapter, found, findings, line)
    asked = "" if reading.anyway else ask()
    if code.constants and not (asked or reading.anyway or explained):
        asked = constants.question(code, trust.is_known_mistake(code.component, found, shown))
    held = code.inner is not None or code.component == routing.COMPONENT
    if guessed and not known and held:  # layers and experts say more than a name
        known = trust.confirmed(code.component, adapter, found, shown)
    if not asked and guessed and not known:
        taken = f"{code.name} was taken for {code.component}, whose formula its numbers do not give"
        asked = f"{taken}. {line()}".rstrip()
    if asked:
        raise Unclear(asked)
    entering, unsure = entering_of(code, reading, fits=explained)
    declared = declared_choices(shown, reading)
    if explained and not reading.anyway:
        demand_documented_scales(code.name, code.component, code.thing, declared, reading)
    judged_as = f"{code.name} is judged as {code.component}{guess_of(code) * guessed}"
    assumptions = (
        *found.idle,
        *[interleaved.SENTENCE] * found.interleaved,
        *unsure,
        *assumed_of_code(declared, reading, code),
        *given_for_none(code, reading),
        *(code.construction.assumed if code.construction is not None else []),
        *constants.assumed(code.constants),
        *unusual(declared, reading, code),
        *([single.sentence] if single else []),
        *of_limits(backend.limits),
        *exchanged(probe.built, found.table),
        *([code.wrapper.sentence] if code.wrapper is not None else []),
        *[IDLE_DROPOUT] * (backend.limits.dropout and ignores_dropout(code, probe, adapter)),
    )
    limits = limits_measured(backend, Choices.of(declared), strict=reading.strict)
    return replace(
        backend,
        choices=declared,
        limits=limits,
        assumed=(*[judged_as] * guessed, *assumptions, *calling.doubtful(said), *found.remarks),
        summary=summary(code, adapter, found.table),
        fits=explained,
        understood=(
            judged_as,
            *assumptions,
            *code.said,
            *entering,
            *said,
            *found.words,
            *chosen(declared, reading),
            *said_of(limits, dropout="dropout" in code.known),
            *filter(None, [ungiven_of(adapter)]),
        ),
    )


_READERS: Mapping[str, Callable[[Code, Reading], Backend]] = {
    **dict.fromkeys(maker.COMPONENTS, _making),
    "batch": adapt_batch,
    "loss": adapt_loss,
}
"""The readings of components that are no layers."""
