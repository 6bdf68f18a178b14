"""Tests of schedules that end at another rate than 0, which an argument or a constant holds."""

import math

import pytest
import torch

from attentest.judging.bench import Bench
from attentest.judging.judge import judge
from attentest.targets.adapt import Reading, Unclear
from attentest.targets.adapt.adaptation import adapt

FORMULA = "schedule.formula"


def scaled(step, warmup, total_steps, max_lr=1e-3, min_lr=1e-4):
    if step < warmup:
        return max_lr * step / warmup
    done = min(1.0, (step - warmup) / (total_steps - warmup))
    return min_lr + 0.5 * (max_lr - min_lr) * (1.0 + math.cos(math.pi * done))


def cut_off(step, d_model, warmup, min_lr):
    return max(min_lr, d_model**-0.5 * min(step**-0.5, step * warmup**-1.5))


def ratio(optimizer, num_warmup_steps, num_training_steps, min_lr_ratio=0.1):
    def factor(step):
        if step < num_warmup_steps:
            return step / num_warmup_steps
        done = (step - num_warmup_steps) / (num_training_steps - num_warmup_steps)
        cosine = 0.5 * (1.0 + math.cos(math.pi * min(1.0, done)))
        return min_lr_ratio + (1.0 - min_lr_ratio) * cosine

    return torch.optim.lr_scheduler.LambdaLR(optimizer, factor)


class Rates:
    def __init__(self, warmup, total_steps, lr, eta_min=1e-5):
        self.sizes, self.rates = (warmup, total_steps), (lr, eta_min)

    def get_lr(self, step):
        return scaled(step, *self.sizes, *self.rates)


@pytest.mark.parametrize("schedule", [scaled, cut_off, ratio, Rates])
def test_last_rate_in_an_argument_is_assumed(schedule):
    backend = adapt(schedule, name="get_lr")
    assert any("=0, at which" in one for one in backend.assumed)
    assert judge(Bench.for_status(backend, effort=0.2), FORMULA).status.conforms


def half_warm(step, warmup, total_steps, max_lr=1e-3, min_lr=1e-4):
    return scaled(step, 2 * warmup, total_steps, max_lr, min_lr)


def test_mistake_with_a_last_rate_is_asked_about_and_found():
    with pytest.raises(Unclear, match="no listed schedule"):
        adapt(half_warm, name="get_lr")
    backend = adapt(half_warm, Reading(choices={"schedule": "cosine"}), "get_lr")
    assert judge(Bench.for_status(backend, effort=0.2), FORMULA).status == "violation"


def added(step, warmup, total_steps, max_lr=1e-3, min_lr=1e-4):
    return min_lr + scaled(step, warmup, total_steps, max_lr, 0.0)


warmup_iters, max_iters, learning_rate, min_lr = 2000, 600000, 6e-4, 6e-5


def added_constant(it):
    return min_lr + scaled(it, warmup_iters, max_iters, learning_rate, 0.0)


@pytest.mark.parametrize("schedule", [added, added_constant])
def test_last_rate_that_is_added_to_all_rates_is_a_question(schedule):
    with pytest.raises(Unclear, match="--anyway"):
        adapt(schedule, name="get_lr")
    assert adapt(schedule, Reading(anyway=True), "get_lr").choices["schedule"] == "cosine"
