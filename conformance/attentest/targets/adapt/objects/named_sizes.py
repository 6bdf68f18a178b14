"""Sizes that the words of names say, or the uses of arguments, where no list has the names."""

import inspect
import re
from collections.abc import Callable, Collection, Mapping
from functools import partial
from operator import attrgetter
from typing import Any

from attentest.targets.adapt.components import part_named, squashed
from attentest.targets.adapt.encoders.image_names import is_of_images
from attentest.targets.adapt.fillings import NEEDED, STACKS, Filling, filling_of, sizes_known
from attentest.targets.adapt.reading import Reading
from attentest.targets.language_models.construction.uses import USED, size_by_use
from attentest.targets.models.size_names import LONE_WIDTHS, ROWS, size_by_words
from attentest_spec.components import inside

_TABLES = ("source_vocabulary", "target_vocabulary")


_OF_A_MODEL = re.compile(r"^(albert|bert|vit|transformer|trm)_", re.IGNORECASE)
"""The name of a model before that of a field, as in `bert_num_heads`."""


def sizes_by_name_or_use(
    thing: Callable[..., Any], component: str, unknown: Collection[str], known: Collection[str]
) -> dict[str, Filling]:
    """Return the sizes that the words of names say, and in a stack the uses of the arguments."""
    found = sizes_by_words(component, unknown, known)
    if component not in STACKS:
        return found
    used = {own: size_by_use(thing, own) for own in unknown if own not in found}
    once = {*known}.union(*(one.settles for one in found.values())) & {"heads", "layers"}
    return found | {own: _size(one) for own, one in used.items() if one in USED and one not in once}


def _size(size: str) -> Filling:
    return Filling(size, attrgetter(size), frozenset([size]), f"sizes.{size}")


def sizes_by_words(
    component: str, unknown: Collection[str], known: Collection[str]
) -> dict[str, Filling]:
    """Return the sizes that the words of names say which no list has.

    A feed-forward network (`ff`) that no class makes is its width beside a number of heads.
    """
    parts, stack = inside(component), component in STACKS
    sizes = {"d_model", "max_length", "dropout"} | ({"layers", *_TABLES} if stack else set())
    sizes |= {size for size, part in NEEDED.items() if part in parts}
    named = ("", *["feed_forward"] * ("heads" in known))
    rows = ROWS if stack and "d_model" in known else {}
    found = {
        own: size_by_words(squashed(own), component) or rows.get(squashed(own), "")
        for own in unknown
        if part_named(own) in named
        if squashed(own) not in LONE_WIDTHS or "d_model" not in known
    }
    return {own: _size(size) for own, size in found.items() if size in sizes}


def numbers_by_words(
    component: str,
    arguments: Mapping[str, inspect.Parameter],
    read: Mapping[str, Filling | None],
) -> dict[str, Filling]:
    """Return the sizes of numbers by default (`ff=2048`) whose words say one that is not known."""
    known = sizes_known(read.values())
    numbers = [
        own
        for own, one in read.items()
        if one is None and type(arguments[own].default) is int
        if component != "encoder" or not is_of_images(squashed(own), [*map(squashed, arguments)])
    ]
    found = sizes_by_words(component, numbers, known)
    return {own: one for own, one in found.items() if not one.settles & known}


def filling_of_field(
    name: str, component: str, reading: Reading, known: Collection[str]
) -> Filling | None:
    """Return what the field `name` of a configuration gets, by its words where no list has it.

    Words say no size that one of the `known` fields is, and no length, which is tried as one.
    """
    # A configuration can be stored: what is no number is a name in it.
    plain = partial(inspect.Parameter, kind=inspect.Parameter.KEYWORD_ONLY, annotation=str)
    held = [name, *known]
    if (found := filling_of(name, plain(name), component, reading, held)) is not None:
        return found
    short = _OF_A_MODEL.sub("", name)
    if short and short != name:
        return filling_of_field(short, component, reading, [_OF_A_MODEL.sub("", n) for n in known])
    others = (filling_of(one, plain(one), component, reading, held) for one in known)
    said = sizes_by_words(component, [name], ()).get(name)
    taken = sizes_known(others) | {"max_length"}
    return None if said is None or said.settles & taken else said
