"""The part of a study that the unit tests run; `proof` and `exhaustive` run the rest.

A study covers every fault, every option or every file, and most of its items fail together. Which
of them the unit tests run is fixed by their names. `proof` runs a part of the rest, and
`exhaustive` all that is left. A test that is costly and alone has the mark of the one that runs it.
"""

import zlib
from collections import defaultdict
from collections.abc import Iterable
from typing import Any, TypeVar

import pytest
from _pytest.mark import ParameterSet

T = TypeVar("T")


def share(unit: int, rest: int = 8) -> pytest.MarkDecorator:
    """Mark a test with parameters: of every `unit` of them, one is a unit test.

    One in `rest` of the others is left to `proof`.
    """
    return pytest.mark.share(unit, rest)


def divide(items: Iterable[pytest.Item]) -> None:
    """Mark the items of tests that have a share, and those of `exhaustive` as no unit tests."""
    studies = defaultdict(list)
    for one in items:
        if one.get_closest_marker("share"):
            studies[one.nodeid.partition("[")[0]].append(one)
        if one.get_closest_marker("exhaustive"):
            one.add_marker("proof")
    for study in studies.values():
        unit, rest = next(study[0].iter_markers("share")).args
        study.sort(key=lambda one: zlib.crc32(one.name.encode()))
        for one in study[-(-len(study) // unit) :]:
            for mark in _marks(one.name, rest):
                one.add_marker(mark)


def item(*values: Any, name: str, unit: bool, rest: int = 1) -> ParameterSet:
    """Return a parameter of a study: a unit test, or left to `proof` or to `exhaustive`.

    One in `rest` of those that are no unit test is left to `proof`.
    """
    return pytest.param(*values, id=name, marks=[] if unit else _marks(name, rest))


def _marks(name: str, rest: int) -> list[pytest.MarkDecorator]:
    """Return the marks of an item that is no unit test."""
    left = in_share(f"the rest: {name}", rest)
    return [pytest.mark.proof] if left else [pytest.mark.proof, pytest.mark.exhaustive]


def in_share(name: str, share: int = 2) -> bool:
    """Return whether the item `name` is one of the unit tests."""
    return one_of(range(share), name) == 0


def one_of(values: Iterable[T], name: str) -> T:
    """Return one of the values, always the same for the same name."""
    known = list(values)
    return known[zlib.crc32(name.encode()) % len(known)]
