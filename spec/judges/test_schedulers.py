"""The schedules of the spec compared with those of torch, optax and transformers."""

import math
from typing import Any

import pytest
import torch

from attentest_spec.choices import Choices
from attentest_spec.schedule import learning_rate
from attentest_spec.setting import Setting
from attentest_spec.sizes import Sizes

SIZES = Sizes(d_model=16, warmup=7, total_steps=40, factor=0.3)
STEPS = range(1, 40)


def spec(schedule: str, first: str = "one") -> list[float]:
    given = Setting(SIZES, Choices(schedule=schedule, first_step=first))
    return [float(learning_rate(given, step)) for step in STEPS]


def run(scheduler: Any) -> list[float]:
    """Return the rate of every update of a scheduler of torch."""
    found = []
    for _ in STEPS:
        found.append(scheduler.optimizer.param_groups[0]["lr"])
        scheduler.optimizer.step()
        scheduler.step()
    return found


def sgd(rate: float) -> torch.optim.SGD:
    return torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=rate)


def test_linear_is_two_schedulers_of_torch() -> None:
    optimizer, warmup = sgd(SIZES.factor), SIZES.warmup
    last = SIZES.total_steps - warmup
    rising = torch.optim.lr_scheduler.LinearLR(optimizer, 1 / warmup, 1.0, warmup - 1)
    falling = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.0, last)
    chained = torch.optim.lr_scheduler.SequentialLR(optimizer, [rising, falling], [warmup - 1])
    assert run(chained) == pytest.approx(spec("linear"), rel=1e-9)


def test_cosine_is_that_of_torch() -> None:
    optimizer, last = sgd(SIZES.factor), SIZES.total_steps - SIZES.warmup
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, last)
    assert run(scheduler)[: last - 1] == pytest.approx(
        spec("cosine")[SIZES.warmup - 1 :][: last - 1]
    )


def test_noam_is_lambda_lr_over_the_formula() -> None:
    def formula(epoch: int) -> float:
        step = epoch + 1
        return math.pow(16, -0.5) * min(math.pow(step, -0.5), step * math.pow(7, -1.5))

    scheduler = torch.optim.lr_scheduler.LambdaLR(sgd(SIZES.factor), formula)
    assert run(scheduler) == pytest.approx(spec("noam"), rel=1e-12)


def test_optax_counts_from_zero() -> None:
    optax = pytest.importorskip("optax")
    rising = optax.linear_schedule(0.0, SIZES.factor, SIZES.warmup)
    falling = optax.cosine_decay_schedule(SIZES.factor, SIZES.total_steps - SIZES.warmup)
    joined = optax.join_schedules([rising, falling], [SIZES.warmup])
    found = [float(joined(step)) for step in range(len(STEPS))]
    assert found == pytest.approx(spec("cosine", "zero"), rel=1e-5)


@pytest.mark.parametrize(
    ("name", "schedule"),
    [
        ("get_linear_schedule_with_warmup", "linear"),
        ("get_cosine_schedule_with_warmup", "cosine"),
        ("get_constant_schedule_with_warmup", "constant"),
        ("get_inverse_sqrt_schedule", "inverse-root"),
    ],
)
def test_transformers_counts_from_zero(name: str, schedule: str) -> None:
    optimization = pytest.importorskip("transformers.optimization")
    ends = {"num_training_steps": SIZES.total_steps} if schedule in ("linear", "cosine") else {}
    make = getattr(optimization, name)
    scheduler = make(sgd(SIZES.factor), num_warmup_steps=SIZES.warmup, **ends)
    assert run(scheduler) == pytest.approx(spec(schedule, "zero"), rel=1e-9)
