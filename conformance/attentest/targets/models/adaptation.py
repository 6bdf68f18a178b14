"""From a whole model to a backend: what is inferred is written as code, and that code is judged."""

import inspect
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from types import ModuleType
from typing import Any

import torch
from torch import nn

from attentest.analysis.encoded import shown_in_parts
from attentest.analysis.identify import Finding, identify
from attentest.analysis.mistaken_models import mistake_of_model
from attentest.targets.adapt import trust
from attentest.targets.adapt.advice.head_numbers import with_number_of_heads
from attentest.targets.adapt.advice.scale_words import demand_documented_scales
from attentest.targets.adapt.assumptions.choices import (
    assumed_of_call,
    chosen,
    declared_choices,
    measured,
)
from attentest.targets.adapt.assumptions.of_limits import of_limits
from attentest.targets.adapt.limits import least_width, said_of
from attentest.targets.adapt.parameters import FoundTable, interleaved
from attentest.targets.adapt.parameters.building import DISTINCT
from attentest.targets.adapt.probing import undisturbed
from attentest.targets.adapt.reading import Reading, Unclear
from attentest.targets.adapt.ungiven import sentence
from attentest.targets.adapt.unspecified.assignments import demand_assignment
from attentest.targets.adapt.wrappers.own_heads import OfAllHeads
from attentest.targets.adapt.wrappers.own_norms import InTurn
from attentest.targets.constants.copies import copied
from attentest.targets.constants.models import demand_effect, demand_explanation
from attentest.targets.models.building import building
from attentest.targets.models.calls.positions import demand_fit_of_positions
from attentest.targets.models.inferring import Inferred, infer, probe_of
from attentest.targets.models.inputs.one_pad import with_one_pad
from attentest.targets.models.instances import stands_for_class
from attentest.targets.models.layers import Read, demand_layers
from attentest.targets.models.lengths import EQUAL_LENGTHS
from attentest.targets.models.limits import (
    demand_answer_as_built,
    demand_free_ids,
    demand_one_offset,
    is_random_without_dropout,
    limits_of,
    with_rounded_heads,
    with_rows_of_vocabulary,
)
from attentest.targets.models.outputs.kinds import kind_of_output, logits_scaled
from attentest.targets.models.questions.defaults import inferred_of_defaults
from attentest.targets.models.questions.guesses import demand_no_effect
from attentest.targets.models.questions.hiding import demand_hiding_fill
from attentest.targets.models.questions.lengths import inferred_of_equal_lengths
from attentest.targets.models.questions.losses import demand_logits
from attentest.targets.models.questions.meanings import demand_meanings, documentation
from attentest.targets.models.recognition import is_whole, makes_models
from attentest.targets.models.surrounded import OUTSIDE, Surrounded
from attentest.targets.models.tables.fixed_rows import with_free_rows
from attentest.targets.models.tables.head_matrices import with_own_parameters
from attentest.targets.models.tables.idle_norms import with_idle_norms_left_out
from attentest.targets.models.tables.lone_norm import demand_normed_inputs, table_with_both_norms
from attentest.targets.models.tables.mapping import table_of
from attentest.targets.models.tables.memory_norms import (
    MemoryAsItIs,
    question_of_memory,
    with_plain_memory,
)
from attentest.targets.models.tables.norms_in_turn import with_own_norms
from attentest.targets.models.tables.norms_of_calls import NormsOfCalls
from attentest.targets.models.tables.one_table import (
    NOT_ADDED,
    ONE_TABLE,
    SHARED,
    adds_rows,
    scale_beside_rows,
    shared_positions,
    without_rows,
)
from attentest.targets.models.tables.vocabularies import Vocabulary
from attentest.targets.models.trials import Building
from attentest.targets.models.written import Adapter, summary_of
from attentest.targets.nearest import nearest
from attentest.targets.neighbours import functions_that_build
from attentest.targets.origin import origin
from attentest.targets.single import SINGLE, Single, in_precision_of, in_single
from attentest.targets.whole import AdaptedWhole
from attentest_spec import Limits, Place, Unsupported
from attentest_spec.choices import Value
from attentest_spec.torch import Recipe, TorchBackend

TARGET_PADS = (
    "assumed that padding of the target is at its end, where no real step sees it: between tokens "
    "it is not hidden, which --strict reports"
)


def adapt_class(
    thing: Callable[..., Any],
    reading: Reading,
    name: str,
    home: ModuleType | None,
    read: Read,
    instance: nn.Module | None = None,
) -> AdaptedWhole:
    """Return what :func:`adapt_model` does, or a model made by the one function that builds it.

    The function is looked for where the class itself is a question, as one is that takes its parts.
    """

    def adapted(asked: Reading) -> AdaptedWhole:
        return adapt_model(thing, asked, name, home, read, instance)

    try:
        found: AdaptedWhole = with_number_of_heads(adapted(reading), reading, adapted)
    except Unclear as question:
        makers = functions_that_build(thing) if inspect.isclass(thing) and not instance else []
        if len(makers) != 1:
            raise
        (maker,) = makers

        def made_by(asked: Reading) -> AdaptedWhole:
            home = sys.modules[maker.__module__]
            return adapt_model(maker, asked, maker.__qualname__, home, read)

        try:
            made: AdaptedWhole = with_number_of_heads(made_by(reading), reading, made_by)
        except Unclear as other:
            is_built = not _UNBUILT.search(str(other))  # the question of the class says more then
            raise (other if is_built else question) from None
        sentence = f"assumed that {name} is built as {maker.__qualname__} does, and judged as that"
        head, *rest = made.understood
        assumed = (sentence, *made.assumed)
        return replace(made, assumed=assumed, understood=(head, sentence, *rest))
    return found


def adapt_model(
    thing: Callable[..., Any],
    reading: Reading,
    name: str,
    home: ModuleType | None,
    read: Read,
    instance: nn.Module | None = None,
) -> AdaptedWhole:
    """Return the class, or the function that makes models, as a backend of the component `model`.

    An `instance` of the class has to compute what the class computes at its sizes; `read` reads the
    class of a part. Raises Unclear, with what to add, where it does not say how it is built or
    called.
    """
    with undisturbed():
        built = with_free_rows(building(thing, name, reading))
        built = built if reading.strict else with_own_parameters(built)
        one_vocabulary = DISTINCT.but(target_vocabulary=DISTINCT.source_vocabulary)
        least = least_width(built, one_vocabulary, name, "the classes of its parts, one by one")
        built, inferred = _inferred(built, name, documentation(thing), reading)
        demand_effect(built, inferred, name)
        demand_no_effect(built, inferred, name)
        built = with_own_norms(built, inferred, name, reading)
        one = _Asked(thing, reading, name, home, read, instance, least)
        try:
            made = with_idle_norms_left_out(built, inferred, reading, partial(_adapted, one))
        except Unclear as question:
            raise (question_of_memory(built, name) or question) from None
        unknown = not (made.fits or made.mistake)
        if unknown and (other := question_of_memory(built, name)):
            raise other
        return made


@dataclass(frozen=True)
class _Asked:
    """The model that is adapted, as :func:`adapt_model` is asked for it, and its least width."""

    thing: Callable[..., Any]
    reading: Reading
    name: str
    home: ModuleType | None
    read: Read
    instance: nn.Module | None
    least: int


def _adapted(asked: _Asked, built: Building, inferred: Inferred) -> AdaptedWhole:
    """Return the backend of a model that is built and called so."""
    thing, reading, name = asked.thing, asked.reading, asked.name
    built, found = table_with_both_norms(built, inferred, name, reading)
    whole = built
    if shared := shared_positions(built, found):
        if reading.strict:
            raise Unclear(SHARED.format(name))
        built = without_rows(built, shared)
        inferred = infer(built, name, documentation(thing), reading)
        found = table_of(built, inferred, name)
    if not reading.anyway:
        demand_answer_as_built(built, inferred, name)
        demand_meanings(thing, name, inferred, reading)
    built = with_rows_of_vocabulary(built, inferred)
    limits = replace(limits_of(built, inferred, found.table, reading), least_width=asked.least)
    fixed = not reading.strict and is_random_without_dropout(built, inferred)
    if asked.instance is not None:
        stands_for_class(asked.instance, built, inferred, found.table)
    adapter = Adapter(
        name,
        origin(thing, asked.home, name),
        built,
        inferred,
        found.table,
        {**found.choices, **reading.choices},
        replace(limits, dropout=limits.dropout and not fixed, fixed_dropout=fixed),
    )
    if shared and "embedding_scale" not in adapter.choices:
        scale = scale_beside_rows(whole, inferred, found, shared[0])
        choices = {"positional_encoding": "none", **scale} if scale else {}
        adapter = replace(adapter, choices={**adapter.choices, **choices})
    made = _measured(adapter, found, reading)
    if made.fits and not reading.anyway:
        demand_documented_scales(name, "model", thing, made.choices, reading)
    demand_normed_inputs(built, made, name)
    demand_fit_of_positions(inferred.call.every_argument, name, fits=made.fits)
    if not reading.anyway:
        demand_one_offset(name, made, made.choices)
        demand_logits(name, thing, made, reading)
        demand_hiding_fill(name, made.choices.get("mask_fill"), reading)
    if not (reading.anyway or made.fits):
        demand_free_ids(name, built, inferred.call.compiled())
        one_vocabulary = DISTINCT.but(target_vocabulary=DISTINCT.source_vocabulary)
        demand_layers(probe_of(built, one_vocabulary).model, name, asked.read)
    scaled = made.choices.get("embedding_scale", "sqrt-d") == "sqrt-d"
    if shared and not adds_rows(whole, inferred, found, shared[0], is_scaled=scaled):
        raise Unclear(f"{SHARED.format(name)} {NOT_ADDED}")
    return made


def _inferred(built: Building, name: str, doc: str, reading: Reading) -> tuple[Building, Inferred]:
    """Return how a model is built and called.

    Constants of code have the default precision of torch, and the least number of float64 fits
    into no other: where that raises, double precision is the default, and is not judged. Code that
    asks for float32 whatever its input is may raise too: it is read with double precision in its
    place, and judged in float32. What raises for lengths that differ gets equal ones.
    """
    try:
        return with_one_pad(built, infer(built, name, doc, reading), name, doc, reading)
    except Unclear as question:
        is_equal = EQUAL_LENGTHS in str(question)
        if is_equal and (found := inferred_of_equal_lengths(built, name, doc, reading)):
            return found
        if found := inferred_of_defaults(built, name, doc, reading, str(question)):
            return found
        if _OVERFLOW in str(question):
            doubled = replace(built, doubled=True)
            return doubled, infer(doubled, name, doc, reading)
        if reading.strict or not _PRECISIONS.search(str(question)):
            raise
        widened = replace(built, widened=True)
        try:
            return widened, infer(widened, name, doc, reading)
        except Unclear as other:
            raise (question if _PRECISIONS.search(str(other)) else other) from None


_ASKED = re.compile(rf"\b({copied.__name__}|{with_plain_memory.__name__})\(")
"""The expression of a model that is asked about where nothing explains its numbers."""
_UNBUILT = re.compile(r"could not be built|cannot run:")
"""The words of a question about a function that makes no model."""
_OVERFLOW = "cannot be converted to type float without overflow"
_PRECISIONS = re.compile(r"dtype|scalar type|\bDouble\b")
"""The words of a failure of code whose precisions differ."""


def is_model(thing: Any, reading: Reading, name: str) -> bool:
    """Say whether `thing` is a class of whole models, or a function that makes them."""
    own = name or getattr(thing, "__name__", "")
    if reading.component:
        makes = inspect.isclass(thing) or makes_models(own, thing)
        return reading.component == "model" and makes
    return makes_models(own, thing) or is_whole(own, thing)


def _measured(adapter: Adapter, found: FoundTable, reading: Reading) -> AdaptedWhole:
    if found.interleaved and reading.strict:
        raise Unclear(interleaved.QUESTION.format(adapter.name, "model"))
    findings = _findings(adapter)
    single = None if reading.strict or adapter.building.widened else _in_single(adapter, findings)
    if single:
        adapter, findings = replace(adapter, limits=single[0]), single[1]
    explained = trust.explained(findings)
    demand_assignment(found, explained, reading, adapter.name)
    inferred = {
        **kind_of_output(adapter.building, adapter.inferred),
        **adapter.choices,
        **measured(findings),
    }
    if not explained:
        scaled = logits_scaled(adapter.building, adapter.inferred, adapter.table)
        inferred = {**scaled, **inferred}
    shown = {} if explained else shown_in_parts(_backend(adapter, ()), inferred)
    inferred |= shown
    mistake = ""
    beside: Mapping[str, Value] = {}
    if not explained and _ASKED.search(adapter.building.expression):
        mistake, beside = mistake_of_model(_backend(adapter, ()), inferred)
    choices = declared_choices({**inferred, **beside}, reading)
    near = partial(nearest, _backend(replace(adapter, choices=choices), ()), "model")
    is_known = explained or bool(shown or mistake)
    demand_explanation(adapter.building, is_known, reading, adapter.name, near)
    if not reading.strict:
        limits = with_rounded_heads(_backend(adapter, ()), choices, explained)
        adapter = replace(adapter, limits=limits)
    outside = OUTSIDE if adapter.is_surrounded else ()
    own = {name: one for name, one in choices.items() if name not in outside}
    if ONE_TABLE in adapter.building.doubts:
        own.pop("positional_encoding", None)
    order = [interleaved.SENTENCE] * found.interleaved
    unhidden = [TARGET_PADS] * adapter.inferred.right_padded
    known = assumed_of_call(own, reading, "model", adapter.building)
    is_single = bool(single) or adapter.building.widened
    assumptions = (*order, *unhidden, *known, *[SINGLE] * is_single, *of_limits(adapter.limits))
    said = (
        f"{adapter.name} is judged as model",
        *assumptions,
        *adapter.building.said,
        *adapter.inferred.said,
        "parameters:",
        *(f"  {line}" for line in found.lines),
        *found.remarks,
        *chosen(own, reading),
        *said_of(adapter.limits),
        *filter(None, [sentence(adapter.inferred.ungiven)]),
    )
    made = _backend(replace(adapter, choices=choices), said)
    doubts = (*assumptions, *adapter.building.doubts, *adapter.inferred.doubts, *found.remarks)
    return replace(
        made, assumed=doubts, summary=summary_of(adapter), fits=explained, mistake=mistake
    )


def _findings(adapter: Adapter) -> Mapping[str, Finding]:
    """Return what is measured of the choices, in double precision wherever it computes in it."""
    built = adapter.building
    if not (built.doubled or built.widened):
        return identify(_backend(adapter, ()))
    precisions = ("float64", *adapter.limits.precisions)
    wide = replace(adapter, limits=replace(adapter.limits, precisions=precisions))
    with in_precision_of(doubled=built.doubled, widened_too=built.widened):
        return identify(_backend(wide, ()))


def _in_single(adapter: Adapter, findings: Mapping[str, Finding]) -> Single | None:
    """Return what holds for the model in single precision, where that explains its numbers."""
    probe = probe_of(adapter.building, DISTINCT.but(target_vocabulary=DISTINCT.source_vocabulary))
    call = adapter.inferred.call.compiled()
    answer = partial(probe.called, call, *probe.tokens)
    return in_single(_backend(adapter, ()), answer, findings, adapter.choices)


def _backend(adapter: Adapter, said: tuple[str, ...]) -> AdaptedWhole:
    """Return the backend that the code of `adapter` defines, run on the live model."""
    space: dict[str, Any] = {
        **adapter.building.space,
        "torch": torch,
        "Limits": Limits,
        "Place": Place,
        "Unsupported": Unsupported,
        "Recipe": Recipe,
        "TorchBackend": TorchBackend,
    }
    exec(adapter.body(), space)
    for one in _LIVE:  # copies: no pickle
        space[one.__name__] = one
    made: TorchBackend = space["backend"]
    return AdaptedWhole(
        name=made.name,
        title=made.title,
        recipes=made.recipes,
        choices=made.choices,
        limits=made.limits,
        understood=said,
        adapter=adapter,
    )


_LIVE = (Surrounded, Vocabulary, InTurn, OfAllHeads, NormsOfCalls, MemoryAsItIs)
"""The classes whose code an adapter contains."""
