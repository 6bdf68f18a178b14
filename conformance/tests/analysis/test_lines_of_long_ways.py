"""Steps that many ways lead to, as residual connections make them: each is visited once."""

from functools import reduce
from types import SimpleNamespace

import numpy as np

from attentest.analysis.lines.alignment import Alignment
from attentest.analysis.lines.formula import Step

WAYS = 60
"""The number of sums, one behind the other: two ways through each."""


def test_the_steps_before_many_sums_are_found_in_few_visits() -> None:
    start = Step("x", "", "", "BLD", np.zeros((1, 2, 2)), 0)

    def added(before: Step, number: int) -> Step:
        return Step("sum", "", "", "BLD", np.zeros((1, 2, 2)), number, (before, before))

    last = reduce(added, range(1, WAYS), start)
    alignment = SimpleNamespace(covered={start.number})
    assert Alignment.neighbours(alignment, last) == {0}  # type: ignore[arg-type]
