"""The shapes in the signatures of the oracles, as types of jaxtyping that beartype checks.

The checks are on in the spec's own tests alone: other tests of the same process call the oracles
as users do, and may replace parts of them by wrong ones on purpose.
"""

import sys
from collections.abc import Callable
from functools import cache, reduce, wraps
from operator import or_
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

import numpy as np
from beartype import beartype
from jaxtyping import Bool, Float64, Int64, Shaped, install_import_hook

from attentest_spec.components import CHAPTERS
from attentest_spec.setting import Array, Floats, Mask, Tokens

OTHERS = ("linear", "order", "relative_bias")
MODULES = tuple(f"attentest_spec.{name}" for name in (*CHAPTERS, *OTHERS))
"""The modules whose functions are checked."""

KINDS = {Array: Shaped, Floats: Float64, Mask: Bool, Tokens: Int64}

checking = False
"""Whether the shapes are checked; a fixture of conftest.py switches it on."""


@cache
def install() -> None:
    """Have every function of the modules checked; RuntimeError where one is imported already."""
    if early := [name for name in MODULES if name in sys.modules]:
        raise RuntimeError(f"Imported before their shapes could be checked: {', '.join(early)}.")
    install_import_hook(MODULES, f"{__name__}.checked")


def checked(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return `function` with the types of its signature checked wherever `checking` is on."""
    function.__annotations__ = {
        name: shaped(annotation) for name, annotation in function.__annotations__.items()
    }
    strict = beartype(function)

    @wraps(function)
    def call(*inputs: Any, **named: Any) -> Any:
        return strict(*inputs, **named) if checking else None  # its answer is not looked at

    return call


def shaped(annotation: Any) -> Any:
    """Return the annotation with every `Annotated` array in it as a type of jaxtyping."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        kind, shape = arguments
        return KINDS[kind][np.ndarray, shape]
    if origin in (Union, UnionType):
        return reduce(or_, map(shaped, arguments))
    return origin[tuple(map(shaped, arguments))] if origin is tuple else annotation
