"""The lines of wrong learning rates, in code on plain numbers."""

from pathlib import Path

import pytest
from mistaken_code import adapted, edited

from attentest.judging.bench import Bench
from attentest.judging.judge import judge
from attentest.results.verdict import Status

CODE = """
import math

from torch.optim.lr_scheduler import LambdaLR, LRScheduler


def rate(step, model_size, factor, warmup):
    if step == 0:
        step = 1
    decay = step ** (-0.5)
    rise = step * warmup ** (-1.5)
    shape = min(decay, rise)
    return factor * (model_size ** (-0.5) * shape)


class ScheduledOptim:
    def __init__(self, optimizer, lr_mul, d_model, n_warmup_steps):
        self._optimizer = optimizer
        self.lr_mul = lr_mul
        self.d_model = d_model
        self.n_warmup_steps = n_warmup_steps
        self.n_steps = 0

    def step_and_update_lr(self):
        self._update_learning_rate()
        self._optimizer.step()

    def zero_grad(self):
        self._optimizer.zero_grad()

    def _get_lr_scale(self):
        steps, warmup = self.n_steps, self.n_warmup_steps
        return (self.d_model**-0.5) * min(
            steps ** (-0.5),
            steps * warmup ** (-1.5),
        )

    def _update_learning_rate(self):
        self.n_steps += 1
        lr = self.lr_mul * self._get_lr_scale()
        for param_group in self._optimizer.param_groups:
            param_group["lr"] = lr


class InverseSquareRootLR(LRScheduler):
    def __init__(self, optimizer, d_model, warmup_steps, last_epoch=-1):
        self.d_model = d_model
        self.warmup_steps = warmup_steps
        super().__init__(optimizer, last_epoch)

    def get_lr(self):
        step = self.last_epoch + 1
        scale = self.d_model**-0.5
        if step < self.warmup_steps:
            scale *= step / self.warmup_steps**1.5
        else:
            scale *= 1 / math.sqrt(step)
        return [scale for base in self.base_lrs]


def get_lr(it, max_lr, warmup_iters, max_iters):
    if it + 1 < warmup_iters:
        return max_lr * (it + 1) / warmup_iters
    done = (it + 1 - warmup_iters) / (max_iters - warmup_iters)
    coefficient = 0.5 * (1.0 + math.cos(math.pi * min(done, 1.0)))
    return max_lr * coefficient


def get_linear_schedule_with_warmup(optimizer, num_warmup_steps, num_training_steps):
    def lr_lambda(current_step):
        if current_step < num_warmup_steps:
            return float(current_step) / float(max(1, num_warmup_steps))
        left = float(num_training_steps - current_step)
        return max(0.0, left / float(max(1, num_training_steps - num_warmup_steps)))

    return LambdaLR(optimizer, lr_lambda)
"""

MISTAKES = {
    "rate-power": ("rate", "warmup ** (-1.5)", "warmup ** (-0.5)", "rise = step"),
    "rate-width": ("rate", "model_size ** (-0.5) *", "model_size ** 0.5 *", "return factor"),
    "rate-no-factor": ("rate", "factor * (model", "1.0 * (model", "return 1.0"),
    "rate-decay": ("rate", "decay = step ** (-0.5)", "decay = step ** (-1)", "decay = step"),
    "rate-larger": ("rate", "min(decay, rise)", "max(decay, rise)", "shape = max"),
    "optimiser-power": (
        "ScheduledOptim",
        "steps * warmup ** (-1.5)",
        "steps * warmup ** (-1)",
        "steps * warmup",
    ),
    "optimiser-width": (
        "ScheduledOptim",
        "(self.d_model**-0.5) * min",
        "(self.d_model**-1) * min",
        "return (self.d_model",
    ),
    "optimiser-factor": (
        "ScheduledOptim",
        "self.lr_mul * self._get",
        "self.lr_mul**2 * self._get",
        "lr = self.lr_mul",
    ),
    "scheduler-rise": ("InverseSquareRootLR", "warmup_steps**1.5", "warmup_steps", "scale *= step"),
    "scheduler-fall": ("InverseSquareRootLR", "1 / math.sqrt(step)", "1 / step", "scale *= 1"),
    "scheduler-width": ("InverseSquareRootLR", "_model**-0.5", "_model**0.5", "scale = self"),
    "cosine-rise": (
        "get_lr",
        "(it + 1) / warmup_iters",
        "(it + 1) / max_iters",
        "return max_lr * (it",
    ),
    "cosine-half": ("get_lr", "0.5 * (1.0 +", "1.0 * (1.0 +", "coefficient ="),
}


@pytest.mark.parametrize("case", MISTAKES)
def test_line_of_a_wrong_rate_is_the_one_that_carries_the_error(tmp_path: Path, case: str) -> None:
    name, right, wrong, line = MISTAKES[case]
    cosine = {"schedule": "cosine", "first_step": "one"}
    given = {"choices": cosine} if name == "get_lr" else {}
    code = edited(CODE, (right, wrong))
    backend = adapted(tmp_path, name, code, component="learning_rate", **given)
    verdict = judge(Bench(backend), "schedule.formula")
    assert verdict.status is Status.VIOLATION
    assert verdict.location is not None
    assert verdict.location.code.startswith(line), verdict.location
    assert not verdict.location.confirmed


NAMES = (
    "rate",
    "ScheduledOptim",
    "InverseSquareRootLR",
    "get_lr",
    "get_linear_schedule_with_warmup",
)


@pytest.mark.parametrize("name", NAMES)
def test_right_rate_is_judged(tmp_path: Path, name: str) -> None:
    backend = adapted(tmp_path, name, CODE, component="learning_rate")
    assert judge(Bench(backend), "schedule.formula").status in (Status.PASS, Status.DEVIATION)
