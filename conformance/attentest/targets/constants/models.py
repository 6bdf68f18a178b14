"""Constants of a file that are sizes of its model: they say what an argument would say."""

import sys
import time
from collections.abc import Callable, Collection, Iterator
from itertools import islice, product
from keyword import iskeyword
from types import ModuleType
from typing import Any
from weakref import WeakSet

import torch

from attentest.targets.adapt.components import squashed, words_of
from attentest.targets.adapt.names import HEAD_WIDTH, SIZES
from attentest.targets.adapt.parameters.building import DISTINCT
from attentest.targets.adapt.probing import undisturbed
from attentest.targets.adapt.reading import Reading, Unclear
from attentest.targets.constants.components import ASSUMED
from attentest.targets.constants.copies import SECONDS, copied, numbers_named
from attentest.targets.constants.numbers_read import (
    HEAD_WIDTH_CODE,
    contradiction,
    numbers_of_file,
)
from attentest.targets.constants.source import Constants
from attentest.targets.constants.written import numbers_of_settings
from attentest.targets.models.inferring import Inferred, probe_of
from attentest.targets.models.size_names import size_by_words, sizes_named
from attentest.targets.models.trials import Building
from attentest.targets.signatures import constructor_arguments

_MOST = 6
"""Limit of the meanings of the constants of one model that are tried."""


def size_constants(
    thing: Callable[..., Any], reading: Reading, known: Collection[str]
) -> Iterator[str]:
    """Yield the sizes that constants of the code of `thing` may be, as keywords of a call.

    None are yielded where they give no size that `known` lacks.
    """
    found = {**numbers_of_settings(thing), **numbers_named(thing)}
    held = [squashed(one) for one in found]
    names = [squashed(one) for one in constructor_arguments(thing)]
    arguments = {*known, *(size for one in names for size in sizes_named(one, names, ""))}
    options = {}
    for own, value in found.items():
        codes = list(islice(_codes(own, value, held, reading), 2))
        if HEAD_WIDTH_CODE in codes and {"d_model", "heads"} & arguments:
            continue  # a constant does not follow an argument
        if codes and own.isidentifier() and not iskeyword(own):
            options[own] = codes
    named = [own for own, codes in options.items() if "sizes.layers" in codes]
    if "layers" in arguments or named not in ([], [Constants.listed]):
        options.pop(Constants.listed, None)  # a list of that length holds the parts of a layer
    own_file = {own: one for own, one in numbers_of_file(thing).items() if own in options}
    if said := contradiction(own_file, {own: options[own][0] for own in own_file}):
        raise Unclear(f"{thing.__name__} {said}")
    for chosen in islice(product(*options.values()), _MOST):
        words = " ".join(chosen)
        if any(f"sizes.{size}" in words for size in _NEEDED if size not in known):
            values = ", ".join(f"{a}={b}" for a, b in zip(options, chosen, strict=True))
            if _is_copied_soon(thing, values):
                yield values


_NEEDED = ("d_model", "heads", "layers", "source_vocabulary", "target_vocabulary")


_LAST_PAD = 3
"""The last id of padding that is judged where it is fixed: larger ones may be in no vocabulary."""


def _is_copied_soon(thing: Callable[..., Any], values: str) -> bool:
    """Say whether a copy with `values` is made at all, and in a time that allows for many.

    The time is that of the files, whatever the values are: those that are slow are copied once.
    """
    home = sys.modules.get(thing.__module__)
    if home in _SLOW:
        return False
    start = time.process_time()
    try:
        with undisturbed():
            eval(f"copied(thing, {values})", {"copied": copied, "thing": thing, "sizes": DISTINCT})
    except Exception:  # code that a user wrote may raise anything
        return False
    soon = time.process_time() - start < SECONDS
    if not soon and home is not None:
        _SLOW.add(home)
    return soon


_SLOW: WeakSet[ModuleType] = WeakSet()
"""The modules whose files take too long to copy."""


def _codes(own: str, value: float, held: Collection[str], reading: Reading) -> Iterator[str]:
    """Yield the expressions that the constant `own` may be, beside the names `held`."""
    said = next((size for size, one in reading.arguments.items() if one == own), "")
    if own in reading.given:
        yield repr(reading.given[own])
        return
    if said in SIZES:
        yield f"sizes.{said}"
        return
    if own == Constants.listed:
        yield "sizes.layers"
        return
    name = squashed(own)
    sizes = [*sizes_named(name, held, ""), size_by_words(name, "")]
    if isinstance(value, float):
        yield from ["sizes.dropout"] * ("dropout" in sizes and 0 <= value < 1)
    elif value > 1 and name in HEAD_WIDTH:
        yield HEAD_WIDTH_CODE
    elif value > 1 or (value == 1 and "layers" in sizes and {"layer", "layers"} & {*words_of(own)}):
        small = value <= _LAST_PAD  # such an id of padding is judged as it is
        usual = [one for one in sizes if one and one != "dropout"]
        usual = [one for one in usual if not (small and one.endswith("_pad"))]
        yield from (f"sizes.{size}" for size in dict.fromkeys(usual))


def assumed_of(values: str) -> str:
    """Return what is assumed where constants are `values`."""
    return ASSUMED.format(values)


def demand_effect(built: Building, inferred: Inferred, name: str) -> None:
    """Raise Unclear where a number of heads that is a constant changes no output."""
    if f"{copied.__name__}(" not in built.expression or "heads" not in built.known:
        return
    sizes = DISTINCT.but(target_vocabulary=DISTINCT.source_vocabulary)
    several, fewer = probes = [probe_of(built, sizes.but(heads=n)) for n in (5, 2)]
    shapes = [{own: one.shape for own, one in made.model.state_dict().items()} for made in probes]
    if shapes[0] != shapes[1]:
        return
    fewer.model.load_state_dict(several.model.state_dict())
    call = inferred.call.compiled()
    one, other = (probe.called(call, *probe.tokens) for probe in (several, fewer))
    if (
        isinstance(one, torch.Tensor)
        and isinstance(other, torch.Tensor)
        and torch.equal(one, other)
    ):
        raise Unclear(
            f"{name} was built as {built.expression}, and its numbers are those of one number of "
            f"heads, whatever the constant is: make the number of heads an argument of the "
            f"constructor, or name the classes of its parts, one by one."
        )


def demand_explanation(
    built: Building, explained: bool, reading: Reading, name: str, difference: Callable[[], str]
) -> None:
    """Raise Unclear where constants are sizes, and no choice gives the numbers of the model.

    `difference` returns a sentence on the first step that differs, "" for an unknown one.
    """
    if explained or reading.anyway or f"{copied.__name__}(" not in built.expression:
        return
    place = difference()
    raise Unclear(
        f"{name} has sizes that are constants of the code, and no choice gives its numbers: that "
        f"is a mistake in it, or a constant means something else. {place}{' ' * bool(place)}It was "
        f"built as {built.expression}. Say which is which with --argument SIZE=NAME, leave one as "
        f"it is with --give NAME=VALUE, make them arguments of the constructor, or judge it with "
        f"--anyway."
    )
