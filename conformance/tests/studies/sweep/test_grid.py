"""The plans of a sweep."""

import pytest

from attentest.studies.learning.regime import Regime
from attentest.studies.learning.task import BadTask
from attentest.studies.learning.tasks import TASKS
from attentest.studies.sweep.grid import Grid, Plan
from attentest.studies.sweep.record import key_of
from attentest_spec import UnknownName, registry

NORMS = {"norm_placement": ("pre", "post")}
CODES = {"positional_encoding": ("interleaved", "learned", "none")}
WIDTHS = {"d_model": (16, 32)}


def test_every_combination_is_trained_from_every_seed() -> None:
    grid = Grid(choices={**NORMS, **CODES}, axes=WIDTHS, seeds=(0, 4))
    cells = {(one.cell, one.seed) for one in grid.plans}
    assert len(grid.plans) == len(cells) == 2 * 3 * 2 * 2
    assert {one.regime.sizes.d_model for one in grid.plans} == {16, 32}
    first = grid.plans[0]
    assert first.choices == {"norm_placement": "pre", "positional_encoding": "interleaved"}
    assert (first.settings, first.seed) == ({"d_model": 16}, 0)


def test_one_factor_differs_from_the_base_at_a_time() -> None:
    grid = Grid(choices={**NORMS, **CODES}, axes=WIDTHS, one_at_a_time=True)
    base = {"norm_placement": "pre", "positional_encoding": "interleaved", "d_model": 16}
    differing = [
        {name: one for name, one in plan.levels.items() if one != base[name]} for plan in grid.plans
    ]
    assert differing == [
        {},
        {"norm_placement": "post"},
        {"positional_encoding": "learned"},
        {"positional_encoding": "none"},
        {"d_model": 32},
    ]


def test_several_tasks_are_a_factor_and_one_is_none() -> None:
    both = Grid(tasks=("copy", "reversal"))
    assert [one.regime.task for one in both.plans] == ["copy", "reversal"]
    assert both.factors == {"task": ("copy", "reversal")}
    assert Grid(tasks=("reversal",)).factors == {}


@pytest.mark.parametrize(
    "wrong",
    [
        {"choices": {"norm_place": ("pre",)}},
        {"choices": {"norm_placement": ("pre", "pots")}},
        {"axes": {"depth": (1, 2)}},
        {"tasks": ("copying",)},
    ],
    ids=str,
)
def test_names_that_are_none_are_refused(wrong: dict[str, dict[str, tuple[str, ...]]]) -> None:
    with pytest.raises(UnknownName):
        Grid(**wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "wrong",
    [
        {"choices": {"norm_placement": ()}},
        {"axes": {"layers": (1, 1)}},
        {"seeds": ()},
        {"seeds": (-1,)},
    ],
    ids=str,
)
def test_levels_and_seeds_that_cannot_be_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(BadTask):
        Grid(**wrong)  # type: ignore[arg-type]


def test_a_key_depends_on_all_that_a_training_depends_on() -> None:
    plan = Plan("paper", "copy", {"norm_placement": "pre"}, {"steps": 5}, {}, 0)
    others = [
        Plan("paper", "copy", {"norm_placement": "post"}, {"steps": 5}, {}, 0),
        Plan("paper", "copy", {}, {"steps": 5}, {}, 0),
        Plan("paper", "copy", {"norm_placement": "pre"}, {"steps": 6}, {}, 0),
        Plan("paper", "reversal", {"norm_placement": "pre"}, {"steps": 5}, {}, 0),
        Plan("paper", "copy", {"norm_placement": "pre"}, {"steps": 5}, {}, 1),
        Plan(registry.installed()[0], "copy", {"norm_placement": "pre"}, {"steps": 5}, {}, 0),
    ]
    keys = {key_of(one) for one in (plan, *others)}
    assert len(keys) == 1 + len(others)
    relabelled = Plan("paper", "copy", {"norm_placement": "pre"}, {"steps": 5}, {"a": 1}, 0)
    assert key_of(relabelled) == key_of(plan)  # the levels are those of a table


def test_a_length_to_train_at_is_that_of_the_training_questions_alone() -> None:
    regime = Regime.of("copy", length=8, train_length=5)
    assert (regime.length, regime.trained_length, regime.sizes.max_length) == (8, 5, 8)
    assert Regime.of("copy", length=4, train_length=9).sizes.max_length == 9
    assert Regime.of("copy", length=4).trained_length == 4
    with pytest.raises(BadTask, match="another vocabulary at each length"):
        Regime.of("modular-addition", train_length=TASKS["modular-addition"].length + 2)
    with pytest.raises(BadTask, match="at least 1"):
        Regime.of("copy", train_length=0)
