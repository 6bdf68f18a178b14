"""Models whose call raises unless a size is the default of an argument that a part is not given."""

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from attentest.targets.adapt.components import squashed
from attentest.targets.adapt.parameters.building import DISTINCT
from attentest.targets.adapt.reading import Reading, Unclear
from attentest.targets.constants.copies import copied, numbers_named
from attentest.targets.models.inferring import Inferred, infer
from attentest.targets.models.limits import longest
from attentest.targets.models.size_names import size_by_words, sizes_named
from attentest.targets.models.trials import Building, trial

_ASSUMED = (
    "assumed that {0}={1}, with which a part of {2} is built as nothing gives it another, is the "
    "size that {2} is meant for: a call at another size raises, which is a mistake if others are "
    "meant. Judged with {0} as given everywhere"
)
_SMALLEST = 16
"""The least number that is looked for in the words of a failure: smaller ones are in most."""


def inferred_of_defaults(
    built: Building, name: str, doc: str, reading: Reading, failure: str
) -> tuple[Building, Inferred] | None:
    """Return how a model is called where a default in its code is the width that it is given.

    A `failure` of the call names the default. None where there is none, or it changes nothing.
    """
    for found in () if reading.strict else _with_defaults(built, name, failure):
        if trial(found):
            continue
        try:
            inferred = infer(found, name, doc, reading)
        except Unclear:
            continue
        wide = DISTINCT.but(d_model=3 * DISTINCT.d_model)
        if longest(found, inferred) == longest(found, inferred, wide):  # else a width is a length
            return found, inferred
    return None


def _with_defaults(built: Building, name: str, failure: str) -> Iterator[Building]:
    """Yield `built` from copies of its files in which such a default is the size of its name."""
    thing: Any = built.space.get(name)
    said = {int(one) for one in re.findall(r"(?<![\w.])\d+(?![\w.])", failure)}
    is_called = built.expression.startswith(f"{name}(")
    if thing is None or not is_called or max(said, default=0) < _SMALLEST:
        return
    numbers = numbers_named(thing)
    held = [squashed(one) for one in numbers]
    for own, value in numbers.items():
        if type(value) is not int or value < _SMALLEST or value not in said:
            continue
        words = squashed(own)
        for size in dict.fromkeys([*sizes_named(words, held, ""), size_by_words(words, "")]):
            if size in built.known & {"d_model", "d_ff"}:
                rest = built.expression.removeprefix(name)
                doubt = _ASSUMED.format(own, value, name)
                yield replace(
                    built,
                    expression=f"{copied.__name__}({name}, {own}=sizes.{size}){rest}",
                    space={**built.space, copied.__name__: copied},
                    said=(*built.said, doubt),
                    doubts=(*built.doubts, doubt),
                )
