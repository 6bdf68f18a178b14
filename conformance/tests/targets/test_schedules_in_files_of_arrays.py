"""Schedules in files that import NumPy and no torch: they are called with numbers of steps."""

import pytest
from mistaken_code import adapted, broken

COUNTED = """
import numpy as np


class NoamOpt:
    def __init__(self, model_size, factor, warmup, optimizer):
        self.model_size, self.factor, self.warmup = model_size, factor, warmup
        self.optimizer, self._step = optimizer, 0

    def step(self):
        self._step += 1
        for group in self.optimizer.param_groups:
            group["lr"] = self.rate()
        self.optimizer.step()

    def rate(self, step=None):
        step = self._step if step is None else step
        rising = step * self.warmup**-1.5
        return self.factor * self.model_size**-0.5 * min(step**-0.5, rising)
"""
POWERS = ("step**-0.5", "np.power(step, -0.5)")


@pytest.mark.parametrize("edits", [(), (POWERS,)], ids=["numbers", "powers"])
def test_schedule_with_its_own_count_is_read_in_a_file_of_arrays(edits, tmp_path):
    assert not broken(adapted(tmp_path, "NoamOpt", edited(*edits)), "schedule.formula")


@pytest.mark.parametrize(
    "edit",
    [("min(step", "max(step"), ("warmup**-1.5", "warmup**-0.5")],
    ids=["maximum", "exponent"],
)
def test_schedule_with_its_own_count_is_wrong_in_a_file_of_arrays(edit, tmp_path):
    assert broken(adapted(tmp_path, "NoamOpt", edited(edit)), "schedule.formula")


def edited(*edits: tuple[str, str]) -> str:
    """Return the source of the schedule with `edits`."""
    source = COUNTED
    for old, new in edits:
        assert old in source
        source = source.replace(old, new)
    return source
