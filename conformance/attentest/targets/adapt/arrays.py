"""Code that computes with arrays of NumPy or JAX, or with tensors where it is called with these."""

import inspect
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from attentest.targets.adapt.reading import Reading, Unclear
from attentest.targets.adapt.training.schedules import is_schedule
from attentest.targets.libraries import demand_parameters, is_certain, with_tensors
from attentest_spec import Backend


def read_by_library(thing: Any, reading: Reading, read: Callable[[Any], Backend]) -> Backend:
    """Return what `read` makes of `thing`, called with arrays where it computes with these.

    What is said of the code may be wrong: one scalar of NumPy is used with tensors as well. So code
    that answers to no call with arrays is called with tensors, and taken for that where the numbers
    fit. In a file that imports torch, the numbers have to fit where it is called with arrays.
    """
    if inspect.isclass(thing) and is_schedule(thing, reading, thing.__name__):
        return read(thing)  # its rates are plain numbers
    demand_parameters(thing)
    around = with_tensors(thing, rounded=not reading.strict)
    if around is thing:
        return read(thing)
    certain = is_certain(thing)
    try:
        found = read(around)
        if certain or _fits(found):
            return found
    except Unclear:
        if certain:
            with suppress(Unclear):
                if _fits(plain := read(thing)):
                    return plain
            raise
    return read(thing)


def _fits(backend: Backend) -> bool:
    """Say whether the numbers of a backend that was read are those of the formula."""
    return bool(getattr(backend, "fits", True))
