"""Schedules that wrap another one, are called a warm-up, or are given the step to go to."""

from pathlib import Path

import pytest
from mistaken_code import adapted, asked_or_broken, broken, edited

AROUND = """
class WarmUpScheduler:
    def __init__(self, optimizer, lr_scheduler, warmup_steps: int, warmup_start_lr):
        self.optimizer, self.lr_scheduler = optimizer, lr_scheduler
        self.warmup_steps, self.start = warmup_steps, warmup_start_lr
        self.base = [group["lr"] for group in optimizer.param_groups]
        self.last = -1
        self.step()

    def step(self):
        self.last += 1
        if self.last > self.warmup_steps:
            return self.lr_scheduler.step()
        for group, base in zip(self.optimizer.param_groups, self.base):
            group["lr"] = self.start + (base - self.start) * self.last / self.warmup_steps
"""
NAMED = """
from torch.optim.lr_scheduler import LRScheduler


class GradualWarmupScheduler(LRScheduler):
    def __init__(self, optimizer, multiplier, total_epoch, after_scheduler=None):
        if multiplier < 1.0:
            raise ValueError(multiplier)
        self.multiplier, self.total_epoch = multiplier, total_epoch
        self.after_scheduler = after_scheduler
        super().__init__(optimizer)

    def get_lr(self):
        share = min(1.0, self.last_epoch / self.total_epoch)
        if self.multiplier == 1.0:
            return [base * share for base in self.base_lrs]
        return [base * (1.0 + (self.multiplier - 1.0) * share) for base in self.base_lrs]
"""
BY_NUMBER = """
class Base:
    def __init__(self, optimizer):
        self.optimizer = optimizer

    def step(self, step):
        for group in self.optimizer.param_groups:
            group["lr"] = self.rate(step + 1)


class NoamScheduler(Base):
    def __init__(self, hidden_size: int, optimizer, factor: float = 1.0, warmup: int = 4000):
        super().__init__(optimizer)
        self.hidden_size, self.factor, self.warmup = hidden_size, factor, warmup

    def rate(self, number):
        rising = number * self.warmup**-1.5
        return self.factor * self.hidden_size**-0.5 * min(number**-0.5, rising)
"""
OF_ARRAYS = """
import numpy as np


class LambdaWarmUpCosineScheduler:
    def __init__(self, warm_up_steps, lr_min, lr_max, lr_start, max_decay_steps):
        self.warm, self.last, self.start = warm_up_steps, max_decay_steps, lr_start
        self.least, self.most = lr_min, lr_max

    def __call__(self, n, **kwargs):
        if n < self.warm:
            return (self.most - self.start) / self.warm * n + self.start
        share = min((n - self.warm) / (self.last - self.warm), 1.0)
        return self.least + 0.5 * (self.most - self.least) * (1 + np.cos(share * np.pi))
"""
CODE = {
    "LambdaWarmUpCosineScheduler": OF_ARRAYS,
    "WarmUpScheduler": AROUND,
    "GradualWarmupScheduler": NAMED,
    "NoamScheduler": BY_NUMBER,
}
FORMULA = "schedule.formula"


@pytest.mark.parametrize("name", CODE)
def test_schedules_with_other_schedules_are_judged(tmp_path: Path, name: str) -> None:
    assert not broken(adapted(tmp_path, name, CODE[name]), FORMULA, "schedule.warm-up-linear")


@pytest.mark.parametrize(
    ("name", "right", "wrong"),
    [
        (
            "WarmUpScheduler",
            "* self.last / self.warmup_steps",
            "* (self.last / self.warmup_steps) ** 2",
        ),
        (
            "GradualWarmupScheduler",
            "min(1.0, self.last_epoch / self.total_epoch)",
            "self.last_epoch / self.total_epoch",
        ),
        ("LambdaWarmUpCosineScheduler", "(self.last - self.warm)", "self.last"),
        ("NoamScheduler", "self.warmup**-1.5", "self.warmup**-0.5"),
    ],
)
def test_mistakes_in_such_schedules_are_found(
    tmp_path: Path, name: str, right: str, wrong: str
) -> None:
    assert asked_or_broken(tmp_path, name, CODE[name], right, wrong, FORMULA)


def test_adapter_of_a_schedule_that_sets_its_rate_is_written(tmp_path: Path) -> None:
    text = adapted(tmp_path, "NoamScheduler", BY_NUMBER).written()
    space: dict[str, object] = {}
    exec(compile(text, "adapter", "exec"), space)
    assert not broken(space["backend"], FORMULA)  # type: ignore[arg-type]


def test_adapter_of_a_schedule_around_another_is_written(tmp_path: Path) -> None:
    text = adapted(tmp_path, "WarmUpScheduler", AROUND).written()
    space: dict[str, object] = {}
    exec(compile(text, "adapter", "exec"), space)
    assert not broken(space["backend"], FORMULA)  # type: ignore[arg-type]
    assert edited(text, ("lambda _: 1.0", "lambda _: 2.0")) != text
