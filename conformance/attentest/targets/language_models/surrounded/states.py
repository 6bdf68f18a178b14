"""Decoder-only models that return states, with their own table of tokens as the generator.

Those that return the logits of the last token alone are called with each beginning of a text.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from attentest.targets.adapt.probing import undisturbed
from attentest.targets.adapt.reading import Reading, Unclear
from attentest.targets.language_models.calling import (
    Call,
    arguments_of,
    inputs_of,
    is_causal,
    probe_tokens,
    with_part,
    with_required_mask,
)
from attentest.targets.language_models.calls.labels import ONE_ANSWER, apart_without_labels
from attentest.targets.language_models.construction.building import PROBE, Building, building
from attentest.targets.language_models.mistaken import is_meant_to_continue
from attentest.targets.language_models.ordering import with_order
from attentest.targets.language_models.probing import probe_of, probe_sizes
from attentest.targets.language_models.surrounded.modules import EveryStep, Generated
from attentest.targets.models.results import parts_of
from attentest.targets.single import widened

Place = tuple[int | str | None, bool]
"""The place of a tensor in a result, and whether it is an attribute."""

Part = tuple[int | str | None, Tensor, bool]

ASSUMED = (
    "assumed that what {} returns are states, which its caller maps to the vocabulary: it is "
    "judged with the table of its tokens, {}, as the generator"
)


def building_of_states(thing: Callable[..., Any], name: str, reading: Reading) -> Building:
    """Return how a model of states is built, with a generator; Unclear where it is none."""
    built = building(thing, name, reading)
    model = probe_of(built, probe_sizes(built))
    plain, table = arguments_of(model, name, reading).plain, _table(model)
    call, results = _called(model, plain, name)
    shape = (*probe_tokens().shape, PROBE.d_model)
    places = [(key, attribute) for key, one, attribute in results if one.shape == shape]
    if not places or not table:
        raise Unclear(f"{name} returns no states of its tokens, or has no one table of them.")
    key, attribute = places[0] if len(places) == 1 else _mixed(model, call, places)
    options = "" if key is None else f", {key!r}" + ", attribute=True" * attribute
    made = replace(
        built,
        expression=f'{Generated.__name__}({built.expression}, "{table}"{options})',
        space={**built.space, Generated.__name__: Generated},
        doubts=(*built.doubts, ASSUMED.format(name, table)),
    )
    whole = probe_of(made, probe_sizes(made))
    if is_meant_to_continue(thing, name, built, call):
        call = with_order(whole, call, reading.given)
    with widened():
        if not is_causal(whole, call):
            raise Unclear(f"{name} does not hide later tokens by itself.")
    return made


LAST = (
    "assumed that {} returns the logits of the last token alone: those of every token are those of "
    "a call with the tokens up to it"
)


def building_of_last_steps(thing: Callable[..., Any], name: str, reading: Reading) -> Building:
    """Return how a model that returns one step is built; Unclear where it returns others."""
    built = building(thing, name, reading)
    model = probe_of(built, probe_sizes(built))
    arguments = arguments_of(model, name, reading)
    plain = arguments.plain
    if arguments.labels and _differs_with(model, replace(plain, labels=arguments.labels)):
        raise Unclear(f"{name} returns other logits where {arguments.labels} are given.")
    _, results = _called(model, plain, name)
    rows, vocabulary = len(probe_tokens()), PROBE.target_vocabulary
    shapes = [(rows, vocabulary), (rows, 1, vocabulary)]
    places = [(key, attribute) for key, one, attribute in results if tuple(one.shape) in shapes]
    if len(places) != 1:
        raise Unclear(f"{name} returns no logits of its last token alone.")
    key, attribute = places[0]
    options = "" if key is None else f", {key!r}" + ", attribute=True" * attribute
    return replace(
        built,
        expression=f'{EveryStep.__name__}({built.expression}, "{plain.tokens}"{options})',
        space={**built.space, EveryStep.__name__: EveryStep},
        doubts=(*built.doubts, LAST.format(name)),
    )


def _differs_with(model: nn.Module, call: Call) -> bool:
    """Say whether a `call` with labels returns other logits of the last token than one without."""
    with widened():
        labelled = with_part(model, call)
        apart = apart_without_labels(model, labelled) if isinstance(labelled, Call) else None
    return apart is not None and not apart <= ONE_ANSWER  # NaN is another answer


def _called(model: nn.Module, plain: Call, name: str) -> tuple[Call, list[Part]]:
    """Return a call with tokens, and with a mask that hides nothing where it needs one; results."""
    failures = []
    for call in (plain, *with_required_mask(plain)):
        try:
            with undisturbed():
                return call, list(parts_of(model(**inputs_of(call, probe_tokens()))))
        except Exception as failure:  # code that a user wrote may raise anything
            failures.append(failure)
    raise Unclear(f"{name} could not be called with tokens alone: {failures[0]}.")


def _mixed(model: nn.Module, call: Call, places: Sequence[Place]) -> Place:
    """Return the last of the `places` whose states of the last token depend on the first one.

    Others are embeddings, which some results hold too.
    """
    tokens = probe_tokens()
    moved = tokens.clone()
    moved[:2, 0] = tokens[:2, 0].flip(0)
    with undisturbed():
        before, after = (
            {(key, attribute): one for key, one, attribute in parts_of(model(**inputs))}
            for inputs in (inputs_of(call, tokens), inputs_of(call, moved))
        )
    mixed = [one for one in places if not torch.equal(before[one][:2, -1], after[one][:2, -1])]
    return [*places[:1], *mixed][-1]


def _table(model: nn.Module) -> str:
    """Return the name of the one parameter that is a table of tokens, "" for none or several."""
    shape = (PROBE.target_vocabulary, PROBE.d_model)
    held: dict[int, str] = {}
    for name, one in model.named_parameters(remove_duplicate=False):
        if isinstance(one, Tensor) and tuple(one.shape) == shape:
            held.setdefault(one.data_ptr(), name)
    return next(iter(held.values())) if len(held) == 1 else ""
