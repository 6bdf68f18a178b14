"""The steps of the formula that the results of one place in the code may stand for.

A place that runs once computes one step; one that runs several times computes such a step of every
layer, or of query, key and value, or one step head by head or sample by sample. Where the formula
has one such step alone, each run computes it, as of queries and keys that are turned by one call.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import zip_longest

import numpy as np

from attentest.analysis.lines.formula import Formula, Step
from attentest.analysis.lines.layouts import Order, orders, restored
from attentest_spec.setting import Array

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Role:
    """A step, or the slice `index` of it, with the order in which its axes lie in a result."""

    step: Step
    value: Array
    axes: str
    index: tuple[int | slice, ...]
    order: Order = ()


def assignments(formula: Formula, shapes: Sequence[Shape], step: Step) -> Iterator[list[Role]]:
    """Yield what results of these shapes may stand for, `step` among them."""
    seen: set[tuple[int, ...]] = set()
    for family in _families(formula, len(shapes), step):
        key = tuple(id(one.step) for one in family)
        ways = [_ordered(role, shape) for role, shape in zip(family, shapes, strict=True)]
        if key in seen or not all(ways):
            continue
        seen.add(key)
        for roles in zip_longest(*ways):
            yield [role or way[-1] for role, way in zip(roles, ways, strict=True)]


def assembled(step: Step, roles: Sequence[Role], results: Sequence[Array]) -> Array:
    """Return the `results` that stand for `step`, as the axes of that lie."""
    whole = np.full(step.value.shape, np.nan, dtype=results[0].dtype)
    for role, result in zip(roles, results, strict=True):
        if role.step is step:
            whole[role.index] = restored(result, role.order, role.value.shape)
    return whole


def _ordered(role: Role, shape: Shape) -> list[Role]:
    return [
        Role(role.step, role.value, role.axes, role.index, order)
        for order in orders(role.value.shape, role.axes, shape)
    ]


def _families(formula: Formula, runs: int, step: Step) -> Iterator[list[Role]]:
    """Yield as many roles as there are runs."""
    if runs == 1:
        yield [_whole(step)]
        return
    alone = True
    for name in _names(step.name):
        alike = [
            one
            for one in formula.steps
            if name in _names(one.name)
            and one.optional == step.optional
            and len(one.axes) == len(step.axes)
        ]
        alone &= alike == [step]
        for letters in ("", "H", "B", "BH"):
            roles = [role for one in alike for role in _slices(one, letters)]
            if len(roles) == runs:
                yield roles
    if alone:
        yield [_whole(step)] * runs


@lru_cache(maxsize=4096)
def _names(name: str) -> tuple[str, ...]:
    """Return the names that a step shares with others: of other layers, parts and inputs."""
    own = name.rpartition(".")[2]
    placed = re.sub(r"^repeated (turned|normalised) ", "repeated ", own)  # keys are, values not
    return (
        re.sub(r"\d+", "N", name),
        own,
        re.sub(r"\b(query|key|value)\b", "input", placed),
        name.split()[-1],
    )


def _whole(step: Step) -> Role:
    return Role(step, step.value, step.axes, ())


def _slices(step: Step, letters: str) -> Iterator[Role]:
    """Yield the slices of a step along the axes `letters`; nothing where it has none of these."""
    where = [step.axes.find(one) for one in letters]
    if not where:
        yield _whole(step)
        return
    if min(where) < 0:
        return
    rest = "".join(one for one in step.axes if one not in letters)
    for place in np.ndindex(*(step.value.shape[axis] for axis in where)):
        index: list[int | slice] = [slice(None)] * step.value.ndim
        for axis, number in zip(where, place, strict=True):
            index[axis] = number
        yield Role(step, step.value[tuple(index)], rest, tuple(index))
