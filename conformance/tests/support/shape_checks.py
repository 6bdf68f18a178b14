"""The shapes in the signatures of `harness` and `testing`, as types of jaxtyping for beartype.

A shape is written as `Annotated[Floats, "B L D"]`, so that the program itself needs neither
library. Arrays alone are checked, mypy checks everything else. The import hook has to be installed
before the modules are imported.
"""

import sys
from functools import cache, reduce
from operator import or_
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin

import numpy as np
from beartype import beartype
from jaxtyping import Float64, Shaped, install_import_hook

from attentest_spec.setting import Array, Floats

PARTS = ("attentest.harness", "attentest.testing")
"""The packages whose functions are checked."""

KINDS = {Array: Shaped, Floats: Float64}


@cache
def install() -> None:
    """Check every function of the packages; RuntimeError where a module is imported already."""
    starts = tuple(f"{part}." for part in PARTS)
    if early := [name for name in sys.modules if name.startswith(starts)]:
        raise RuntimeError(f"Imported before their shapes could be checked: {', '.join(early)}.")
    install_import_hook(PARTS, f"{__name__}.checked")


def checked(function: Any) -> Any:
    """Return `function` with the arrays in its signature checked at every call."""
    types = {name: shaped(one) for name, one in function.__annotations__.items()}
    function.__annotations__ = types
    return function if all(one is Any for one in types.values()) else beartype(function)


def shaped(annotation: Any) -> Any:
    """Return the annotation as one of arrays with their shapes; Any where it holds none."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        kind, shape = arguments
        return KINDS[kind][np.ndarray, shape]
    if origin in (Union, UnionType):
        members = [NoneType if one is NoneType else shaped(one) for one in arguments]
        return Any if Any in members else reduce(or_, members)
    if origin is tuple:
        members = [one if one is ... else shaped(one) for one in arguments]
        return tuple[tuple(members)]
    return annotation if annotation in KINDS else Any
