"""Unusual implementations of the learning rate."""

import math
from collections.abc import Callable
from fractions import Fraction

import torch
from torch import Tensor
from torch.optim.lr_scheduler import LambdaLR

from attentest.faults.unusual.member import member
from attentest_spec import Sizes
from attentest_spec.choices import Value
from attentest_spec.torch import Recipe, TorchBackend

Rate = Callable[[int], Tensor | float]


def checked(sizes: Sizes) -> None:
    """Refuse a negative warm-up, and an end before the peak."""
    if sizes.warmup < 1:
        raise ValueError(f"warmup must be at least 1, not {sizes.warmup}")
    if sizes.total_steps <= sizes.warmup:
        raise ValueError(f"total_steps must be above {sizes.warmup}, not {sizes.total_steps}")


def in_logarithms(sizes: Sizes) -> Rate:
    """Add logarithms, and take one exponential."""
    checked(sizes)
    scale = math.log(sizes.factor) - 0.5 * math.log(sizes.d_model)

    def rate(step: int) -> float:
        line = math.log(step) - 1.5 * math.log(sizes.warmup)
        return math.exp(scale + min(-0.5 * math.log(step), line))

    return rate


def in_fractions(sizes: Sizes) -> Rate:
    """Compute the share of the peak exactly."""
    checked(sizes)

    def rate(step: int) -> float:
        rising = Fraction(step, sizes.warmup)
        falling = Fraction(sizes.total_steps - step, sizes.total_steps - sizes.warmup)
        return float(Fraction(sizes.factor) * max(Fraction(0), min(rising, falling)))

    return rate


def by_a_scheduler(sizes: Sizes) -> Rate:
    """Resume a scheduler of torch, which counts from 0, at the step before the one asked for."""
    checked(sizes)

    def share(epoch: int) -> float:
        if epoch < sizes.warmup:
            return epoch / sizes.warmup
        progress = (epoch - sizes.warmup) / (sizes.total_steps - sizes.warmup)
        return max(0.0, 0.5 * (1.0 + math.cos(math.pi * progress)))

    def rate(step: int) -> float:
        if step < 1:
            raise ValueError(f"updates count from 1, and {step} is none")
        optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=sizes.factor)
        optimizer.param_groups[0]["initial_lr"] = sizes.factor
        LambdaLR(optimizer, share, last_epoch=step - 2)
        return float(optimizer.param_groups[0]["lr"])

    return rate


def zero_at_zero(sizes: Sizes) -> Rate:
    """Compute in tensors, with the square of the inverse of a root; step 0 has the rate 0."""
    checked(sizes)
    warmup = torch.tensor(float(sizes.warmup), dtype=torch.float64)

    def rate(step: int) -> Tensor:
        number = torch.tensor(float(step), dtype=torch.float64)
        share = torch.minimum(number / warmup, (warmup / number).sqrt())
        return sizes.factor * share

    return rate


def _member(build: Callable[[Sizes], Rate], title: str, **choices: Value) -> TorchBackend:
    name = build.__name__.replace("_", "-")
    return member(f"rate-{name}", title, {"learning_rate": Recipe(build=build)}, choices)


MEMBERS = (
    _member(in_logarithms, "the learning rate of the paper as the exponential of a sum"),
    _member(in_fractions, "a linear schedule in exact fractions", schedule="linear"),
    _member(
        by_a_scheduler,
        "a cosine by a scheduler of torch, resumed at every step",
        schedule="cosine",
        first_step="zero",
    ),
    _member(
        zero_at_zero,
        "an inverse root in tensors of float64, with the rate 0 at step 0",
        schedule="inverse-root",
    ),
)
