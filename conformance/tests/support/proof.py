"""The part of a study that the unit tests run; the env `proof` runs the rest.

A study covers every fault, every option or every file, and most of its items fail together. Which
of them the unit tests run is fixed by their names, so that all of CI runs each item exactly once.
"""

import zlib
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import pytest
from _pytest.mark import ParameterSet

T = TypeVar("T")


def study(
    items: Iterable[T], name: Callable[[T], str] = str, *, share: int = 2
) -> list[ParameterSet]:
    """Return the items as parameters; one in `share` is a unit test, the others are marked."""
    return [
        item(*one, name=name(one), unit=in_share(name(one), share))
        if isinstance(one, tuple)
        else item(one, name=name(one), unit=in_share(name(one), share))
        for one in items
    ]


def item(*values: Any, name: str, unit: bool) -> ParameterSet:
    """Return a parameter of a study, which is a unit test or left to the env `proof`."""
    return pytest.param(*values, id=name, marks=[] if unit else [pytest.mark.proof])


def in_share(name: str, share: int = 2) -> bool:
    """Return whether the item `name` is one of the unit tests."""
    return one_of(range(share), name) == 0


def one_of(values: Iterable[T], name: str) -> T:
    """Return one of the values, always the same for the same name."""
    known = list(values)
    return known[zlib.crc32(name.encode()) % len(known)]
