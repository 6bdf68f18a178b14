"""The grid of a sweep: levels of choices and axes, expanded into the plan of every training."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from math import prod
from typing import Any, overload

from attentest.studies.learning.regime import SIZES, Regime
from attentest.studies.learning.task import BadTask
from attentest.studies.learning.tasks import TASKS
from attentest_spec import CHOICES
from attentest_spec.choices import Value
from attentest_spec.names import require

TASK = "task"
"""The factor that is varied where a sweep has several tasks."""

AXES = (*SIZES, *(one.name for one in fields(Regime) if one.name not in ("task", "sizes")))
"""The settings of a training that an axis can vary."""

Levels = Mapping[str, tuple[Value, ...]]
"""The values of each factor; the first one is the base that others are compared with."""


@dataclass(frozen=True)
class Plan:
    """One training: its level of each factor, and its seed.

    `target` is the backend, `choices` are those that it is built under and `settings` what its
    regime sets, besides the task. `fault` is the mistake of the catalogue that is injected into it,
    "" for none; only the reference model of a profile takes one.
    """

    target: str
    task: str
    choices: Mapping[str, Value]
    settings: Mapping[str, Any]
    levels: Mapping[str, Value]
    seed: int
    fault: str = ""

    @property
    def regime(self) -> Regime:
        """The regime; raises :class:`BadTask` for numbers that cannot be."""
        return Regime.of(self.task, **self.settings)

    @property
    def cell(self) -> tuple[Value, ...]:
        """The level of each factor."""
        return tuple(self.levels.values())


@dataclass(frozen=True)
class Grid:
    """All trainings of a sweep: every combination of the levels, from each of the seeds.

    `choices` and `axes` give the levels of design choices and of settings (see :data:`AXES`).
    With `one_at_a_time` only one factor differs from the base in each training. `settings` holds
    for all. Raises UnknownName for a choice, an option, an axis or a task that is none, and
    :class:`BadTask` for a factor without levels.
    """

    target: str = "paper"
    choices: Levels = field(default_factory=dict)
    axes: Levels = field(default_factory=dict)
    tasks: tuple[str, ...] = ("copy",)
    seeds: tuple[int, ...] = (0,)
    one_at_a_time: bool = False
    settings: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuse names that are none, and factors without levels."""
        for name, levels in self.choices.items():
            choice = CHOICES[require("choice", name, CHOICES)]
            for one in levels:
                if not (choice.number and isinstance(one, int | float)):
                    require(
                        f"option of {name}", str(one), [option.name for option in choice.options]
                    )
        for name in self.axes:
            require("axis", name, AXES)
        for name in self.tasks:
            require("task", name, TASKS)
        for name, levels in {**self.choices, **self.axes, TASK: self.tasks}.items():
            if not levels or len(set(levels)) < len(levels):
                raise BadTask(f"{name} needs levels that differ; {list(levels)} are given.")
        if not self.seeds or min(self.seeds) < 0:
            raise BadTask("Seeds are whole numbers from 0 on, and at least one is needed.")

    @cached_property
    def factors(self) -> dict[str, tuple[Value, ...]]:
        """The factors with their levels; the task is one where there are several."""
        tasks = {TASK: self.tasks} if len(self.tasks) > 1 else {}
        return {**tasks, **self.choices, **self.axes}

    @property
    def plans(self) -> "Plans":
        """The plans in the order of the table: by cell, then by seed."""
        return Plans(self)

    @property
    def cells(self) -> int:
        """The number of combinations of levels that are trained."""
        sizes = [len(levels) for levels in self.factors.values()]
        return 1 + sum(size - 1 for size in sizes) if self.one_at_a_time else prod(sizes)

    def cell(self, index: int) -> dict[str, Value]:
        """Return the combination of levels at `index`, from 0 on; the last factor varies first."""
        cell = {name: levels[0] for name, levels in self.factors.items()}
        if self.one_at_a_time:
            for name, levels in self.factors.items():
                if 0 < index < len(levels):
                    return {**cell, name: levels[index]}
                index -= len(levels) - 1
            return cell
        for name, levels in reversed(self.factors.items()):
            index, level = divmod(index, len(levels))
            cell[name] = levels[level]
        return cell


@dataclass(frozen=True)
class Plans(Sequence[Plan]):
    """The plans of a grid, each made when it is asked for: as many as there may be take no room."""

    grid: Grid

    def __len__(self) -> int:
        """Return the number of trainings."""
        return self.grid.cells * len(self.grid.seeds)

    @overload
    def __getitem__(self, index: int) -> Plan: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[Plan, ...]: ...

    def __getitem__(self, index: int | slice) -> Plan | tuple[Plan, ...]:
        """Return the plan at `index`, or those of a slice."""
        if isinstance(index, slice):
            return tuple(self[one] for one in range(*index.indices(len(self))))
        grid = self.grid
        place, seed = divmod(range(len(self))[index], len(grid.seeds))
        cell = grid.cell(place)
        return Plan(
            grid.target,
            str(cell.get(TASK, grid.tasks[0])),
            {name: cell[name] for name in grid.choices},
            {**grid.settings, **{name: cell[name] for name in grid.axes}},
            cell,
            grid.seeds[seed],
        )
