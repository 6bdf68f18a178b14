"""Weights of several backends that cannot be the same."""

from collections.abc import Mapping
from typing import NamedTuple

from attentest_spec.parameters import Shapes


class Unlike(NamedTuple):
    """Weights that differ: all by name, those of different shapes, and what each backend lacks."""

    every: Shapes
    unlike: list[str]
    lacking: dict[str, list[str]]


def compared(tables: Mapping[str, Shapes]) -> Unlike:
    """Return how the tables of weights of backends, by the backends' names, differ."""
    every = {name: shape for table in tables.values() for name, shape in table.items()}
    unlike = [
        name
        for name in every
        if len({table[name] for table in tables.values() if name in table}) > 1
    ]
    lacking = {name: [one for one in every if one not in table] for name, table in tables.items()}
    return Unlike(every, unlike, {name: some for name, some in lacking.items() if some})
