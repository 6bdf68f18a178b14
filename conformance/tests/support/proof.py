"""The part of a study that the unit tests run; `proof` and `exhaustive` run the rest.

A study covers every fault, every option or every file, and most of its items fail together. Which
of them the unit tests run is fixed by their names. Of studies whose items are crossed, as every
fault in each of two models, `proof` runs a part of the rest, and `exhaustive` all of it.
"""

import zlib
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import pytest
from _pytest.mark import ParameterSet

T = TypeVar("T")


def study(
    items: Iterable[T], name: Callable[[T], str] = str, *, share: int = 2, rest: int = 1
) -> list[ParameterSet]:
    """Return the items as parameters; one in `share` is a unit test, the others are marked.

    One in `rest` of the others is left to `proof`.
    """
    return [
        item(
            *(one if isinstance(one, tuple) else (one,)),
            name=name(one),
            unit=in_share(name(one), share),
            rest=rest,
        )
        for one in items
    ]


def item(*values: Any, name: str, unit: bool, rest: int = 1) -> ParameterSet:
    """Return a parameter of a study: a unit test, or left to `proof` or to `exhaustive`.

    One in `rest` of those that are no unit test is left to `proof`.
    """
    marks = [] if unit else [pytest.mark.proof]
    if not unit and not in_share(f"the rest: {name}", rest):
        marks.append(pytest.mark.exhaustive)
    return pytest.param(*values, id=name, marks=marks)


def in_share(name: str, share: int = 2) -> bool:
    """Return whether the item `name` is one of the unit tests."""
    return one_of(range(share), name) == 0


def one_of(values: Iterable[T], name: str) -> T:
    """Return one of the values, always the same for the same name."""
    known = list(values)
    return known[zlib.crc32(name.encode()) % len(known)]
