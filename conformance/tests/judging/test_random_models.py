"""Models whose dropout draws few numbers: some calls agree by chance, and are no mistake."""

from collections.abc import Iterator
from itertools import chain, repeat
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from attentest.harness.errors import Violation
from attentest.suite.test_model.test_modes import demand_randomness


def case_of(answers: Iterator[float]) -> Any:
    """Return a case of which each call gives the next of `answers`."""
    return SimpleNamespace(output=lambda: np.array([next(answers)]), real=slice(None))


def test_calls_that_agree_by_chance_are_repeated() -> None:
    demand_randomness(case_of(iter([1.0, 1.0, 1.0, 2.0, 2.0, 1.0])), "here")


@pytest.mark.parametrize("first", [(), (2.0,)], ids=["never-random", "random-once"])
def test_calls_that_always_agree_are_a_violation(first: tuple[float, ...]) -> None:
    with pytest.raises(Violation, match="Two calls here give the same output"):
        demand_randomness(case_of(chain(first, repeat(1.0))), "here")
