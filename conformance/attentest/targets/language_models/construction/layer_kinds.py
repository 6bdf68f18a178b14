"""Settings that list the kind of each layer, and those that refuse a dtype of None."""

import re
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from attentest.targets.signatures import source_of

_FULL = '["full_attention"] * sizes.layers'
_GUESSED = re.compile(r"\blayer_types=(None|sizes\.\w+)")
"""The filling of a required list of kinds, as that of an argument that nothing says."""

_SINGLE = '__import__("torch").float32'
_SAID = (
    "not compared: layers of another kind than full_attention (as with a window): the rest is "
    "judged with that kind alone"
)


def with_usual_kinds(
    thing: Callable[..., Any], failures: Sequence[tuple[str, str]]
) -> Iterator[str]:
    """Yield expressions that failed, with full attention in each layer, and with a dtype.

    The file of `thing` has to name that kind: in another one, the word may be that of no layer.
    """
    names_it = "full_attention" in source_of(sys.modules.get(thing.__module__))
    for expression, failure in failures[:2]:
        code = expression
        if names_it and _GUESSED.search(code):
            code = _GUESSED.sub(f"layer_types={_FULL}", code)
            yield code
        if "dtype=None" in code and "dtype" in failure:  # settings may refuse that
            yield code.replace("dtype=None", f"dtype={_SINGLE}")


def kinds_assumed(expression: str) -> tuple[str, ...]:
    """Return what is not compared of a model that `expression` builds with one kind of layers."""
    return (_SAID,) * (_FULL in expression)
