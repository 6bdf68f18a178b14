"""The two widths of an encoder by trial, where names say another reading or none."""

import ast
import inspect
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from itertools import permutations
from typing import Any

from attentest.targets.adapt.components import squashed
from attentest.targets.adapt.construction import Construction
from attentest.targets.adapt.encoders import default_sizes
from attentest.targets.adapt.names import CLASSES, INNER, SIZES, WIDTH
from attentest.targets.adapt.objects.settings import code_tree
from attentest.targets.adapt.reading import Reading, Unclear
from attentest.targets.models.size_names import size_by_words
from attentest.targets.signatures import constructor_arguments

_SAID = "assumed that {} is the width of the model and {} the inner one: its layers are so wide"
_INNER = "assumed that {} is the inner width: its layers are so wide"
_MOST = 4
"""The largest number of arguments that may be one of the widths."""
_WIDTHS = ("d_model", "d_ff")


def with_widths(thing: Any, component: str, reading: Reading) -> Iterator[Construction]:
    """Yield `thing` with each two arguments that may be widths as that of the model and the inner.

    There is none where the reading says one of them, where too many may be one, and in code that
    embeds nothing.
    """
    if "mbed" not in ast.unparse(code_tree(getattr(thing, "__init__", thing))):
        return
    free = [own for own, one in constructor_arguments(thing).items() if _may_be_width(own, one)]
    said = {*reading.arguments} & {*_WIDTHS} or {*reading.given} & {*free}
    if said or len(free) > _MOST:
        return
    for pair in [*permutations(free, 2), *((one,) for one in free)]:
        widths = _WIDTHS[-len(pair) :]  # the one of vectors that are handed in may be that of rows
        arguments = {**reading.arguments, **dict(zip(widths, pair, strict=True))}
        with suppress(Unclear):
            asked = replace(reading, arguments=arguments)
            built = default_sizes.built_of(thing, component, asked)
            words = (_SAID if len(pair) > 1 else _INNER).format(*pair)
            yield replace(built, remark="; ".join(filter(None, (built.remark, words))))


def _may_be_width(own: str, parameter: inspect.Parameter) -> bool:
    """Say whether an argument is a number whose name says no size but a width, or none at all."""
    name, default = squashed(own), parameter.default
    if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD) or name in CLASSES:
        return False
    is_number = type(default) is int and default > 1
    is_open = default is parameter.empty and (
        parameter.annotation in (int, "int") or _OF_WIDTH.search(name) is not None
    )
    if not (is_number or is_open):
        return False
    named = {size for size, names in SIZES.items() if name in names} | {size_by_words(name, "")}
    return name in (*WIDTH, *INNER) or not named - {"", None, *_WIDTHS}


_OF_WIDTH = re.compile(r"dim|size|width|hid|feat|emb|unit|channel|inner|wide|state|model|ff|mlp")
