"""Functions that make an encoder of ids, and the classes that these make."""

import inspect
import re
from dataclasses import replace
from typing import Any

from torch import nn

from attentest.targets.adapt.components import squashed
from attentest.targets.adapt.construction import Construction
from attentest.targets.adapt.parameters.building import DISTINCT
from attentest.targets.adapt.probing import undisturbed
from attentest.targets.neighbours import functions_that_build

_MAKES = re.compile(
    r"(make|build|create|get|init|new).*(model|bert|transformer|classifier|encoder|net|network)"
)


def is_maker(thing: Any, name: str) -> bool:
    """Say whether `thing` is a function that makes a model by its name."""
    return inspect.isfunction(thing) and _MAKES.fullmatch(squashed(name)) is not None


def maker_of(thing: Any) -> Any:
    """Return the one function that makes objects of the class `thing`, None for none or several.

    The class takes parts that are objects, which the function makes of sizes. One that needs two
    texts is no encoder.
    """
    if not inspect.isclass(thing) or not _takes_one_text(thing):
        return None
    makers = [one for one in functions_that_build(thing) if is_maker(one, one.__name__)]
    return makers[0] if len(makers) == 1 else None


_BESIDE = re.compile(r"mask|len|seg|type|pos")
"""Parts of the names of inputs that come with a text."""


def _takes_one_text(thing: Any) -> bool:
    """Say whether a call needs one input, and else what comes with it.

    A class without a call that encodes and decodes needs two.
    """
    if thing.forward is nn.Module.forward and hasattr(thing, "decode"):
        return False
    _, *given = inspect.signature(thing.forward).parameters.values()
    needed = [one.name for one in given if one.default is inspect.Parameter.empty]
    return sum(not _BESIDE.search(one) for one in needed) < 2


def class_of(built: Construction | None) -> Any:
    """Return the class of what is built: that which a function makes."""
    if built is None:
        return None
    return _made(built) if inspect.isfunction(built.make) else built.make


def _made(built: Construction) -> Any:
    with undisturbed():
        made = replace(built, batch=())(DISTINCT)
    return type(made) if isinstance(made, nn.Module) else built.make
