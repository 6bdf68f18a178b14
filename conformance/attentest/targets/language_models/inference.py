"""The inference of all that a decoder-only model is, from one traced call in double precision."""

import linecache
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from torch import nn

from attentest.analysis.lines.recording import Place as CodePlace
from attentest.results.verdict import Location
from attentest.targets.adapt.probing import undisturbed
from attentest.targets.adapt.reading import Reading, Unclear, Unexplained
from attentest.targets.language_models.calling import (
    Arguments,
    Call,
    arguments_of,
    fitted,
    gives_logits,
)
from attentest.targets.language_models.calls.labels import (
    ONE_ANSWER,
    apart_without_labels,
    may_hide_with_labels,
)
from attentest.targets.language_models.calls.layer_caches import with_no_caches
from attentest.targets.language_models.calls.positions import with_positions
from attentest.targets.language_models.calls.training import with_switch, with_training
from attentest.targets.language_models.construction.building import PROBE, Build, Building, building
from attentest.targets.language_models.construction.mixtures import without_mixtures
from attentest.targets.language_models.construction.norms_in_turn import (
    with_columns,
    with_own_norms,
)
from attentest.targets.language_models.construction.settings import SHARED_HEADS
from attentest.targets.language_models.construction.unit_factors import with_unit_factors
from attentest.targets.language_models.differing import OWN, own_choices
from attentest.targets.language_models.fixed_rows import with_free_rows
from attentest.targets.language_models.mistaken import (
    confirming,
    is_meant_to_continue,
    read_with_mistake,
)
from attentest.targets.language_models.numbers.mistakes import Mistake
from attentest.targets.language_models.numbers.reader import Reader
from attentest.targets.language_models.numbers.search import search
from attentest.targets.language_models.ordering import may_be_ordered, with_order
from attentest.targets.language_models.probing import Probed, probe_of, probe_sizes, probed
from attentest.targets.language_models.profiles import nearest, spoken
from attentest.targets.language_models.questions.modes import demand_modes
from attentest.targets.language_models.steps.one_by_one import (
    OneByOne,
    by_steps,
    demand_positions,
    one_by_one,
    words_on_step,
)
from attentest.targets.language_models.surrounded.batches import of_batch
from attentest.targets.language_models.surrounded.filled import filled_up
from attentest.targets.language_models.surrounded.one_text import of_one_text
from attentest.targets.language_models.surrounded.sections import in_sections, is_in_sections
from attentest.targets.language_models.surrounded.set_up import with_set_up
from attentest.targets.language_models.tables import section_of, table_of
from attentest.targets.nearest import shown_line
from attentest.targets.single import widened
from attentest_spec import Place, Sizes
from attentest_spec.choices import Value


@dataclass(frozen=True)
class Inferred:
    """A model as it was read: how it is built and called, its parameter map and its choices.

    `inner` is the inner width of its network at the sizes of the probe, `mistake` what it computes
    in the place of a formula, and `begun` the line where that begins, None where none is known.
    `second` are the choices of the second layer, where they are others than those of the first.
    """

    building: Building
    call: Call
    arguments: Arguments
    table: Mapping[str, Place]
    choices: Mapping[str, Value]
    inner: int
    mistake: Mistake | None = None
    begun: CodePlace | None = None
    second: Mapping[str, Value] = field(default_factory=dict)

    @property
    def mistaken(self) -> Location | None:
        """The line of the mistake, None where none is known."""
        if self.mistake is None or self.begun is None:
            return None
        file, line = self.begun.file, self.begun.line
        code = linecache.getline(file, line).strip()
        words = self.mistake.words
        return Location(file, line, code, self.mistake.subject, "", words)


def called(
    thing: Callable[..., Any], name: str, reading: Reading, build: Build = building
) -> tuple[Building, Arguments, Call]:
    """Return how a model is built and called; Unclear where it is not."""
    demand_modes(thing, name)
    built = of_batch(build(thing, name, reading), thing)
    model = probe_of(built, probe_sizes(built))
    arguments = arguments_of(model, name, reading)
    with widened():
        try:
            call = fitted(model, arguments, name)
        except Unclear as question:
            if (listed := with_no_caches(model, arguments, name)) is not None:
                return built, listed[0], with_training(model, listed[1])
            if (ready := with_set_up(built, thing)) is not None:
                return called(thing, name, reading, lambda *_: ready)
            ordered = with_order(model, arguments.plain, reading.given)
            if ordered.order and gives_logits(model, ordered):
                return built, arguments, ordered
            if (placed := with_positions(model, arguments)) is not None:
                return built, arguments, with_training(model, placed)
            if not reading.strict and (switched := with_switch(model, arguments.plain)):
                said = replace(built, doubts=(*built.doubts, switched[1]))
                return said, arguments, with_training(model, switched[0])
            steps = one_by_one(model, arguments)
            if steps is None:
                others = (
                    of_one_text(built, model, arguments.plain),
                    with_equal_heads(built, question),
                    filled_up(built, model, arguments.plain),
                )
                for other in () if reading.strict else filter(None, others):
                    with suppress(Unclear):
                        return called(thing, name, reading, lambda *_, own=other: own)
                if not (reason := words_on_step(model, arguments)):
                    demand_one_width(name, built, question)
                    raise
                raise Unclear(f"{question}{reason}") from question
            return built, by_steps(arguments), steps
    built = with_own_norms(with_free_rows(built, call), call)
    built = built if reading.strict else without_mixtures(with_columns(built), call)
    return built, arguments, with_training(model, call)


def with_equal_heads(built: Building, question: Unclear) -> Building | None:
    """Return `built` with as many heads of keys as of queries, None where it has so already.

    A call raises with fewer of them, as the `question` says.
    """
    if SHARED_HEADS not in built.expression:
        return None
    failure = question.text.partition("): ")[2].partition(" Say which")[0]
    return replace(
        built,
        expression=built.expression.replace(SHARED_HEADS, "sizes.heads"),
        doubts=(*built.doubts, _EQUAL_HEADS.format(failure)),
    )


_EQUAL_HEADS = (
    "assumed as many heads of keys as of queries: with fewer of them, which an argument or a field "
    "sets, a call fails, and if it is to be used, this is a mistake: {}"
)


def demand_one_width(name: str, built: Building, question: Unclear) -> None:
    """Raise Unclear where a call fails as a matrix has another width than its input."""
    if _OTHER_WIDTH not in question.text:
        return
    failure = question.text.partition("RuntimeError: ")[2].partition(" Say which")[0]
    raise Unclear(
        f"{name} could not be called as a decoder-only model, built as {built.expression}: "
        f"{failure} Its tokens are "
        f"read; a width of one of its parts does not follow the width and the heads that the "
        f"model is given, as a head width that is a constant does not: make it follow, or "
        f"judge its parts one by one."
    ) from question


_OTHER_WIDTH = "shapes cannot be multiplied"


def _confirmed(
    thing: Callable[..., Any], built: Building, call: Call, sizes: Sizes, reading: Reading
) -> Probed | None:
    """Return a call of a model at other sizes than `sizes`, None where it answers at none."""
    for one in confirming(sizes):
        with suppress(Exception):  # code that a user wrote may raise anything
            return probed(thing, built, call, one, reading)
    return None


def infer(
    thing: Callable[..., Any], name: str, reading: Reading, build: Build = building
) -> Inferred:
    """Return all that the numbers say of a model; Unclear, with one question, where they do not."""
    built, arguments, call = called(thing, name, reading, build)
    sizes = probe_sizes(built)
    if not isinstance(call, OneByOne):
        call = with_order(probe_of(built, sizes), call, reading.given)
    one = probed(thing, built, call, sizes, reading)
    found, mistaken, begun = search(one.reader, *one.given), None, None
    if found is None and not reading.strict and (apart := one.by_layer(OWN)):
        found = search(apart, *one.given)
    if found is None:
        around = one.with_experts() if one.mixtures else one.reader
        experts = _experts(name, one, around)
        question = Unclear(experts) if experts else Unexplained(_question(name, around))
        begun = _departure(around)  # before another search knows more of the numbers
        read = read_with_mistake(
            one,
            lambda: _confirmed(thing, built, call, sizes, reading),
            continues=is_meant_to_continue(thing, name, built, call)
            and not may_be_ordered(probe_of(built, sizes), call, reading.given)
            and not may_hide_with_labels(probe_of(built, sizes), call, arguments.labels),
        )
        if read is None:
            factored = None if reading.strict else with_unit_factors(built)
            with suppress(Unclear):
                if factored is not None:
                    return infer(thing, name, reading, lambda *_: factored)
            raise built.otherwise or question
        found, mistaken, line = read
        begun = None if mistaken.deviating else line or begun
    if (held := section_of(found.views)) and not is_in_sections(built):
        return infer(thing, name, reading, lambda *_: in_sections(built, *held))
    table = table_of(found.views)
    if isinstance(table, str):
        raise Unclear(
            f"{name} was read as a decoder-only model, and {table}: its parameters have no map. "
            f"Write a backend by hand, as docs/how-to/add-an-implementation.md shows."
        )
    _demand_one_answer(probe_of(built, sizes), call, name)
    if not reading.anyway:
        demand_positions(name, call, found.choices)
    _demand_small_gains(built, table, name)
    plain = found.choices.get("norm_kind") != "rms" or found.choices.get("rms_weight") == "weight"
    if plain and not reading.anyway:
        _demand_last_gain(built, table, name)
    inner = len(found.views["layers.0.feed_forward.inner.weight"].values)
    second = own_choices(found.choices) if found.first else {}
    choices = {**_without(found.choices, second), **found.first}
    return Inferred(built, call, arguments, table, choices, inner, mistaken, begun, second)


def _without(choices: Mapping[str, Value], others: Mapping[str, Value]) -> dict[str, Value]:
    return {name: one for name, one in choices.items() if name not in others}


def _experts(name: str, one: Probed, around: Reader) -> str:
    """Return what is said of a model that agrees outside of its experts, "" for any other.

    The reader `around` takes the numbers of the experts as they are.
    """
    found = search(around, *one.given) if one.mixtures else None
    if found is None:
        return ""
    kinds = " and ".join(dict.fromkeys(each.name for each in one.mixtures))
    return (
        f"{name} is a decoder-only model with a mixture of experts, {kinds}, in the place of its "
        f"feed-forward network. Around the experts it has the numbers of the reference, under the "
        f"choices of {spoken(found.choices, nearest(found.choices))}: if you meant others, this is "
        f"a mistake. Without --strict a model is judged around experts that make every row of "
        f"that row alone, and add nothing else to it; name {kinds}, to have it judged by itself."
    )


def _demand_small_gains(built: Building, table: Mapping[str, Place], name: str) -> None:
    """Raise Unclear where a gain that is stored minus 1 does not begin as 0."""
    with undisturbed():
        begun = dict(built(PROBE).named_parameters())
    stored = {one for place in table.values() if place.plus for one in place.names(begun)}
    wrong = next((one for one in stored if one in begun and begun[one].any()), "")
    if wrong:
        raise Unclear(
            f"{name} adds 1 to the gain of its layer norms, {wrong}, which does not begin as 0: a "
            f"model that is not trained multiplies by something else than 1. Either that is a "
            f"mistake, or it is meant to; --as encoder judges its layers."
        )


def _demand_last_gain(built: Building, table: Mapping[str, Place], name: str) -> None:
    """Raise Unclear where the gain of the last norm, as it is stored, begins as 0."""
    with undisturbed():
        begun = dict(built(PROBE).named_parameters())
    gain = table.get("norm.gain", Place(""))
    if gain.plus or gain.name not in begun or begun[gain.name].any():
        return
    raise Unclear(
        f"{name} multiplies what its last norm gives by {gain.name}, which begins as 0: its logits "
        f"do not depend on the tokens before it is trained. Either 1 + {gain.name} is meant, or it "
        f"is to begin as 1; --anyway (in Python: anyway=True) judges it as it is."
    )


def _demand_one_answer(model: nn.Module, call: Call, name: str) -> None:
    """Raise Unclear for a model whose last step is another one without labels."""
    with widened():
        apart = apart_without_labels(model, call)
    if apart is not None and not apart <= ONE_ANSWER:  # NaN is another answer
        raise Unclear(
            f"{name} gives the reference's numbers for all tokens where {call.labels} are given; "
            f"without them, as code that generates calls it, it answers for one token alone, and "
            f"that is not the last of them: the logits differ by {apart:.2g}. Look at what it "
            f"computes where {call.labels} is None."
        )


def _departure(reader: Reader) -> CodePlace | None:
    """Return the line at which other numbers than the reference's begin, None for none."""
    missing = reader.reached[1].startswith(("the sum", "the norms"))
    return reader.begun or reader.trace.departure(before=missing)


def _question(name: str, reader: Reader) -> str:
    known = f" (it computes those of {reader.suspected.words})" if reader.suspected else ""
    choice = reader.suspected.declared(reader.sizes) if reader.suspected else ""
    option = choice or "NAME=OPTION"
    late = " The search was ended by its time limit." if reader.is_late else ""
    begun = _departure(reader)
    line = f"; those that it computes instead begin at {shown_line(begun)}" if begun else ""
    line += _single_gain(reader)
    return (
        f"{name} was read as a decoder-only model, and no option of the specification gives its "
        f"numbers: the first that are computed nowhere in it are {reader.reached[1]}{known}{line}."
        f"{late} Either that is a mistake, or a design that the specification does not have: "
        f"compare it with its formula (attentest explain language_model), or name the classes of "
        f"its parts, one by one. A choice that it makes is declared with --choice {option}."
    )


def _single_gain(reader: Reader) -> str:
    """Return the words on a norm that trains one number for all columns, "" for none."""
    held = (name for name, one in reader.parameters.own.items() if one.size == 1)
    name = next((one for one in held if _NORM.search(one.lower())), "")
    return name and f". {name} is one number for all columns, and a norm of it has one for each"


_NORM = re.compile(r"norm|\bln")
