"""Faults in the factors of the rate, in its type, and in what is refused."""

import torch
from torch import Tensor

from attentest.faults.fault import fault
from attentest.faults.reference_models import Hooks


@fault("schedule.factor-ignored", "factor", seam="rate_factor")
def factor_ignored(self: Hooks) -> float:
    """The factor is not used. A search over it compares equal runs."""
    return 1.0


@fault("schedule.factor-twice", "factor", seam="rate_factor")
def factor_twice(self: Hooks) -> float:
    """The schedule and the optimiser both apply the factor. A small rate becomes a tiny one."""
    return self.correct.rate_factor() ** 2


@fault("schedule.factor-of-the-warm-up", "factor", seam="falling")
def factor_of_the_warm_up(self: Hooks, step: int) -> float:
    """The factor is applied to the warm-up alone. The rate jumps where the warm-up ends."""
    return self.correct.falling(step) / self.rate_factor()


@fault("schedule.capped", "factor", seam="as_rate")
def capped(self: Hooks, rate: float) -> Tensor:
    """Rates are cut at a fixed maximum. Larger factors have no effect around the peak."""
    return self.correct.as_rate(min(rate, 2e-4))


@fault("schedule.width-missing", "width", seam="width_factor")
def width_missing(self: Hooks) -> float:
    """The width of the model is not used. The rate is 23 times too large at a width of 512."""
    return 1.0


@fault("schedule.width-without-root", "width", seam="width_factor")
def width_without_root(self: Hooks) -> float:
    """The rate is divided by the width and not by its root. A wide model learns too slowly."""
    return self.correct.width_factor() ** 2


@fault("schedule.width-multiplied", "width", seam="width_factor")
def width_multiplied(self: Hooks) -> float:
    """The rate is multiplied by the root of the width. A wide model diverges at once."""
    return 1.0 / self.correct.width_factor()


@fault("schedule.width-of-the-paper", "width", seam="width_factor")
def width_of_the_paper(self: Hooks) -> float:
    """The width is always 512. Models of other widths have the rates of the base model."""
    return float(512**-0.5)


@fault(
    "schedule.width-in-all-schedules", "width", seam="width_factor", choices={"schedule": "linear"}
)
def width_in_all_schedules(self: Hooks) -> float:
    """The factor of the width is in a linear schedule too. Its peak is not the one that was set."""
    return float(self.sizes.d_model**-0.5)


@fault("schedule.warm-up-of-the-paper", "warm-up-length", seam="warmup_steps")
def warm_up_of_the_paper(self: Hooks) -> int:
    """The warm-up is always 4000 steps. A short run ends before its peak."""
    return 4000


@fault("schedule.warm-up-power-of-one", "warm-up-length", seam="rising")
def warm_up_power_of_one(self: Hooks, step: int) -> float:
    """The line of the warm-up has the exponent -1 and not -3/2. It rises past the decay."""
    return self.correct.rising(step) * float(self.warmup_steps() ** 0.5)


@fault("schedule.six-decimals", "full-precision", seam="as_rate")
def six_decimals(self: Hooks, rate: float) -> Tensor:
    """Rates are rounded to six decimals. The first updates of a wide model have the rate 0."""
    return self.correct.as_rate(round(rate, 6))


@fault("schedule.half-precision", "full-precision", seam="as_rate")
def half_precision(self: Hooks, rate: float) -> Tensor:
    """Rates are float16, as the model is. They are 0 below 6e-8, and coarse above it."""
    return self.correct.as_rate(float(torch.tensor(rate, dtype=torch.float16)))


@fault("schedule.single-precision", "full-precision", seam="as_rate")
def single_precision(self: Hooks, rate: float) -> Tensor:
    """Rates are rounded to float32. Runs in float64 are not repeatable with another library."""
    return self.correct.as_rate(float(torch.tensor(rate, dtype=torch.float32)))


@fault("schedule.array-of-one", "one-number", seam="as_rate")
def array_of_one(self: Hooks, rate: float) -> Tensor:
    """The rate is an array of one element. Optimisers that need a number fail."""
    return self.correct.as_rate(rate)[None]


@fault("schedule.whole-number", "one-number", seam="as_rate")
def whole_number(self: Hooks, rate: float) -> Tensor:
    """The rate is converted to an integer. It is 0 at every step, and nothing is trained."""
    return self.correct.as_rate(rate).long()


@fault("schedule.warm-up-clipped", "impossible-sizes", seam="check_schedule")
def warm_up_clipped(self: Hooks) -> None:
    """A negative warm-up is replaced by 1. A sign error in the settings goes unnoticed."""
    self.sizes = self.sizes.but(warmup=max(1, self.sizes.warmup))
    self.correct.check_schedule()


@fault("schedule.warm-up-by-size", "impossible-sizes", seam="check_schedule")
def warm_up_by_size(self: Hooks) -> None:
    """The sign of the warm-up is dropped. A wrong setting trains with another schedule."""
    self.sizes = self.sizes.but(warmup=abs(self.sizes.warmup))
    self.correct.check_schedule()


@fault(
    "schedule.end-before-the-peak",
    "impossible-sizes",
    seam="check_schedule",
    choices={"schedule": "cosine"},
)
def end_before_the_peak(self: Hooks) -> None:
    """A last step before the end of the warm-up is accepted. The rate grows during the decay."""
    self.check_sizes("warmup")
    self.sizes = self.sizes.but(total_steps=max(self.sizes.total_steps, self.sizes.warmup + 1))


@fault(
    "schedule.refused-without-number",
    "impossible-sizes-named",
    seam="check_schedule",
    kind="wording",
)
def refused_without_number(self: Hooks) -> None:
    """Impossible sizes are refused with no number. It is not said which setting is wrong."""
    try:
        self.correct.check_schedule()
    except ValueError:
        raise ValueError("The schedule cannot be built.") from None


@fault(
    "schedule.refused-by-assertion", "impossible-sizes-named", seam="check_schedule", kind="wording"
)
def refused_by_assertion(self: Hooks) -> None:
    """Impossible sizes fail in an assertion. Its text is empty, and -O removes it."""
    try:
        self.correct.check_schedule()
    except ValueError:
        raise AssertionError from None
