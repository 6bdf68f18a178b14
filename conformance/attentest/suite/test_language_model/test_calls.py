"""Checks of the chapter `language_model`: shapes, parameters, gradients, modes and refusals."""

from collections.abc import Iterator, Sequence
from functools import partial
from math import prod

import numpy as np

from attentest.harness.copies import cast
from attentest.harness.errors import BackendError
from attentest.harness.subject import Subject
from attentest.harness.tolerances import as_floats
from attentest.judging.check import check
from attentest.suite.test_language_model.cases import (
    COMPONENT,
    Text,
    draw_text,
    exported,
    given_kinds,
    matches_text,
    model_sizes,
    of_trained_tokens,
    sides,
)
from attentest.testing.assertions import equal, holds
from attentest.testing.common import (
    dropout_off_in_evaluation,
    parameters_round_trip,
    same_precision,
)
from attentest.testing.draw import Draw
from attentest.testing.gradients import agrees_with_differences, every_parameter_reached
from attentest.testing.refusal import refuses, require_index_errors
from attentest_spec.contract import POSITION_KINDS
from attentest_spec.parameters import count, learned_positions
from attentest_spec.parameters import draw as draw_parameters


@check("language_model.shapes", examples=3)
def test_shapes(subject: Subject, draw: Draw) -> None:
    case = draw_text(subject, draw)
    for tokens in (case.tokens, case.tokens[:1], case.tokens[:, :1], case.tokens[:1, :1]):
        part = case.but(tokens=tokens.copy())
        output = part.output()
        same_precision(case.probe, output)
        matches_text(part, output)


@check("language_model.gradient", examples=2)
def test_gradient(subject: Subject, draw: Draw) -> None:
    case = draw_text(subject, draw, length=draw.length(3, 5), layers=draw.several_layers())
    case = of_trained_tokens(case)
    case.output()
    agrees_with_differences(case.probe, *case.inputs, draw=draw)
    kinds = [one for one in POSITION_KINDS[:0:-1] if one in subject.limits.positions]
    if kinds:
        whole = draw_text(subject, draw, kinds=kinds[:1], layers=1, batch=2, length=3)
        whole = of_trained_tokens(whole)
        agrees_with_differences(whole.probe, *whole.inputs, draw=draw)


@check("language_model.every-parameter-trained", examples=2)
def test_every_parameter_trained(subject: Subject, draw: Draw) -> None:
    case = draw_text(subject, draw, length=draw.length(3, 6), layers=draw.several_layers())
    if learned_positions(subject.choices):
        places = np.tile(np.arange(case.tokens.shape[1]), (len(case.tokens), 1))
        case = case.but(positions=places if "shared" in subject.limits.positions else None)
    every_parameter_reached(case.probe, *case.inputs, draw=draw)


@check("language_model.tied-matrix", examples=2)
def test_tied_matrix(subject: Subject, draw: Draw) -> None:
    case = draw_text(subject, draw)
    free = draw_parameters(COMPONENT, case.probe.sizes, subject.choices.but(tying="none"), draw.rng)
    case.probe.load({name: cast(one, case.probe.precision) for name, one in free.items()})
    held = {name: as_floats(one) for name, one in exported(case.probe).items()}
    same = np.array_equal(held["embedding.weight"], held["generator.weight"])
    declared = subject.choices.tying
    holds(
        same == (declared in ("all-three", "target-and-output")),
        f"Tying is declared as {declared}, and what is loaded into embedding and generator is "
        f"exported as {'one' if same else 'two'}.",
    )
    case.probe.parameters = held
    matches_text(case)


@check("language_model.parameter-count", examples=2)
def test_parameter_count(subject: Subject, draw: Draw) -> None:
    for layers in (draw.layers(1, 2), min(3, subject.limits.layers or 3)):
        sizes = model_sizes(subject, draw, layers=layers)
        probe = subject.part(COMPONENT, sizes)
        found = probe.do("listing what it holds", lambda part: part.inventory())["parameters"]
        held = sum(prod(facts["shape"]) for facts in found.values() if facts.get("trained", True))
        implied = count(COMPONENT, sizes, subject.choices)
        text = f"The model trains {held} numbers; its sizes and choices imply {implied}."
        holds(held == implied, text)


@check("language_model.parameter-map-complete", examples=2)
def test_parameter_map_complete(subject: Subject, draw: Draw) -> None:
    case = draw_text(subject, draw, layers=draw.layers(min(2, subject.limits.layers or 2)))
    found, loaded = exported(case.probe), case.probe.parameters
    missing, extra = sorted(set(loaded) - set(found)), sorted(set(found) - set(loaded))
    holds(not missing and not extra, f"Parameters missing: {missing[:4]}, extra: {extra[:4]}.")
    parameters_round_trip(case.probe, found, loaded)
    matches_text(case)


@check("language_model.layers-differ-at-birth", examples=2)
def test_layers_differ_at_birth(subject: Subject, draw: Draw) -> None:
    sizes = model_sizes(subject, draw, layers=draw.layers(2, 3))
    held = exported(subject.part(COMPONENT, sizes))
    seen: dict[tuple[str, bytes], str] = {}
    for name, values in held.items():
        if not name.startswith("layers.") or values.ndim < 2 or np.ptp(as_floats(values)) == 0:
            continue
        _, _, inner = name.split(".", 2)
        twin = seen.setdefault((inner, as_floats(values).tobytes()), name)
        holds(twin == name, f"{name} and {twin} hold the same numbers at initialisation.")


@check("language_model.out-of-range-refused", examples=2)
def test_out_of_range_refused(subject: Subject, draw: Draw) -> None:
    case = _with_the_last_id(subject, draw)
    _refuses(case, draw, (case.vocabulary, case.vocabulary + draw.integer(1, 90)))


@check("language_model.negative-id-refused", examples=2)
def test_negative_id_refused(subject: Subject, draw: Draw) -> None:
    case = _with_the_last_id(subject, draw)
    _refuses(case, draw, (-1, draw.choose((-100, -2))))


def _with_the_last_id(subject: Subject, draw: Draw) -> Text:
    """Return a text with the last id of the vocabulary, which is accepted."""
    require_index_errors(subject)
    case = draw_text(subject, draw)
    case.tokens[-1, -1] = case.vocabulary - 1
    case.output()
    return case


def _refuses(case: Text, draw: Draw, foreign: Sequence[int]) -> None:
    """Demand that each of the `foreign` ids is refused among others that are accepted."""
    for wrong in foreign:
        tokens = case.tokens.copy()
        tokens[draw.integer(0, len(tokens) - 1), draw.integer(0, tokens.shape[1] - 1)] = wrong
        doing = f"the token {wrong} in a vocabulary of {case.vocabulary}"
        refuses(case.probe.subject, doing, partial(case.probe.output, tokens, None, None))


@check("language_model.too-long-input", examples=2)
def test_too_long_input(subject: Subject, draw: Draw) -> None:
    require_index_errors(subject)
    longest = draw.length(3, 6)
    case = draw_text(subject, draw, length=longest, max_length=longest)
    matches_text(case)
    length = longest + draw.integer(1, 3)
    shape = (len(case.tokens), length)
    longer = case.but(tokens=draw.rng.integers(0, case.vocabulary, size=shape))
    try:
        actual = longer.output()
    except BackendError:
        return
    doing = f"a text of {length} tokens where the greatest length is {longest}"
    learned = learned_positions(subject.choices)
    holds(not learned, f"{doing} was not refused, and no positions were learned beyond it.")
    matches_text(longer, actual, f"output for {doing}")


@check("language_model.impossible-sizes-refused", examples=2)
def test_impossible_sizes_refused(subject: Subject, draw: Draw) -> None:
    for changes in _impossible(subject):
        text = ", ".join(f"{name} {value}" for name, value in changes.items())
        sizes = model_sizes(subject, draw).but(**changes)
        doing = f"building a model with {text}"
        refuses(subject, doing, partial(subject.part, COMPONENT, sizes))


def _impossible(subject: Subject) -> Iterator[dict[str, int]]:
    """Yield sizes that no model has."""
    yield {"layers": 0}
    yield {"heads": 0}
    yield {"target_vocabulary": 0}
    yield {"d_model": 0}
    if subject.choices.head_width == "d/h" and (subject.limits.heads or 2) > 1:
        yield {"d_model": 7, "heads": 2, "kv_heads": 0}
    if subject.choices.key_heads == "fewer" and not subject.limits.one_key_head:
        yield {"d_model": 24, "heads": 6, "kv_heads": 4}


@check("language_model.evaluation-is-deterministic", examples=2)
def test_evaluation_is_deterministic(subject: Subject, draw: Draw) -> None:
    case = draw_text(subject, draw, loaded=False)
    dropout_off_in_evaluation(subject, draw, COMPONENT, case.probe.sizes, *case.inputs)


@check("language_model.input-untouched", examples=2)
def test_input_untouched(subject: Subject, draw: Draw) -> None:
    # The probe compares every input with a copy after each call.
    case = draw_text(subject, draw)
    first = case.output().copy()
    if "padding" in subject.limits.masks:
        draw_text(subject, draw, side=sides(subject)[0]).output()
    if len(subject.limits.positions) > 1:
        draw_text(subject, draw, kinds=given_kinds(subject)[:1]).output()
    again = Text(case.probe, case.tokens.copy())
    equal(again.output(), first, what="output of a second call with the same tokens")
