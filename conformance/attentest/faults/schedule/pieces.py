"""Faults in the warm-up, in the curve after it, and where the two meet."""

import math

from attentest.faults.fault import fault
from attentest.faults.reference_models import Hooks

LINEAR = {"schedule": "linear"}
COSINE = {"schedule": "cosine"}


@fault("schedule.no-warm-up", "warm-up-linear", seam="rising")
def no_warm_up(self: Hooks, step: int) -> float:
    """The rate is at its peak from the first step on. Training diverges in the first updates."""
    return self.peak_rate()


@fault("schedule.quadratic-warm-up", "warm-up-linear", seam="rising")
def quadratic_warm_up(self: Hooks, step: int) -> float:
    """The share of the warm-up is squared. The rate is far too low until the peak."""
    return self.correct.rising(step) * step / self.warmup_steps()


@fault("schedule.warm-up-from-a-floor", "warm-up-linear", seam="rising")
def warm_up_from_a_floor(self: Hooks, step: int) -> float:
    """The warm-up starts at a tenth of the peak. The first updates are too large."""
    return 0.1 * self.peak_rate() + 0.9 * self.correct.rising(step)


@fault("schedule.warm-up-by-epoch", "warm-up-linear", seam="rising")
def warm_up_by_epoch(self: Hooks, step: int) -> float:
    """The rate is raised every second step. It is too low, or too high, in each of the others."""
    return self.correct.rising(2 * (step // 2) + 1)


@fault("schedule.warm-up-never-over", "decay", seam="join_rates", origin="M025")
def warm_up_never_over(self: Hooks, step: int) -> float:
    """The end of the warm-up is tested as a rate of 1. Small rates stay at their peak for ever."""
    rate = min(self.rising(step), self.peak_rate())
    return rate if rate < 1.0 else self.falling(step)


@fault("schedule.rises-for-ever", "decay", seam="join_rates")
def rises_for_ever(self: Hooks, step: int) -> float:
    """The line of the warm-up has no end. The rate grows until training diverges."""
    return self.rising(step)


@fault("schedule.maximum-for-minimum", "decay", seam="join_rates")
def maximum_for_minimum(self: Hooks, step: int) -> float:
    """The larger of the two curves is taken. The rate falls first and grows after the warm-up."""
    return max(self.rising(step), self.falling(max(step, 1)))


@fault("schedule.decay-from-the-start", "peak", seam="falling")
def decay_from_the_start(self: Hooks, step: int) -> float:
    """The decay counts its steps from the end of the warm-up. The rate jumps up there."""
    return self.correct.falling(max(1, step - self.warmup_steps()))


@fault("schedule.pieces-apart", "peak", seam="falling")
def pieces_apart(self: Hooks, step: int) -> float:
    """The decay is not scaled to the peak. The rate jumps down at the end of the warm-up."""
    return self.correct.falling(step) / math.sqrt(self.warmup_steps())


@fault("schedule.warm-up-one-too-long", "peak", seam="warmup_steps")
def warm_up_one_too_long(self: Hooks) -> int:
    """The warm-up ends one step late. Its peak is lower, and so are all later rates."""
    return self.correct.warmup_steps() + 1


@fault("schedule.warm-up-twice-as-long", "peak", seam="warmup_steps")
def warm_up_twice_as_long(self: Hooks) -> int:
    """Both halves of a batch count as steps. The peak comes after twice the warm-up."""
    return 2 * self.correct.warmup_steps()


@fault("schedule.inverse-not-root", "shape", seam="falling")
def inverse_not_root(self: Hooks, step: int) -> float:
    """The rate falls with 1 / step. It is too low after the warm-up, and ever more so."""
    share = self.correct.falling(max(1, step)) / self.peak_rate()
    return self.peak_rate() * min(1.0, share * share)


@fault("schedule.linear-for-root", "shape", seam="falling")
def linear_for_root(self: Hooks, step: int) -> float:
    """The rate falls on a line to 0. The second half of a long run is trained too slowly."""
    warmup, last = self.warmup_steps(), self.sizes.total_steps
    share = (last - step) / (last - warmup)
    return self.peak_rate() * min(1.0, max(0.0, share))


@fault("schedule.constant-for-root", "formula", seam="falling")
def constant_for_root(self: Hooks, step: int) -> float:
    """The rate stays at its peak. The loss does not settle at the end of a run."""
    return self.peak_rate()


@fault("schedule.warm-up-counted-twice", "end", seam="falling", choices=LINEAR)
def warm_up_counted_twice(self: Hooks, step: int) -> float:
    """The steps of the warm-up are added to those of the whole run. The run ends above 0."""
    warmup, last = self.warmup_steps(), self.sizes.total_steps
    return self.peak_rate() * min(1.0, (last + warmup - step) / last)


@fault("schedule.floor-at-a-tenth", "end", seam="falling", choices=COSINE)
def floor_at_a_tenth(self: Hooks, step: int) -> float:
    """The rate ends at a tenth of its peak, which is not declared. The last updates are large."""
    return 0.1 * self.peak_rate() + 0.9 * self.correct.falling(step)


@fault("schedule.whole-cosine", "end", seam="falling", choices=COSINE)
def whole_cosine(self: Hooks, step: int) -> float:
    """A whole period of the cosine is used. The rate is 0 in the middle and grows to its peak."""
    warmup, last = self.warmup_steps(), self.sizes.total_steps
    progress = max(0.0, (step - warmup) / (last - warmup))
    return self.peak_rate() * 0.5 * (1.0 + math.cos(2.0 * math.pi * progress))


@fault("schedule.progress-with-the-warm-up", "peak", seam="falling", choices=COSINE)
def progress_with_the_warm_up(self: Hooks, step: int) -> float:
    """The progress of the cosine counts the warm-up. The rate drops at the end of the warm-up."""
    progress = min(1.0, step / self.sizes.total_steps)
    return self.peak_rate() * 0.5 * (1.0 + math.cos(math.pi * progress))


@fault("schedule.root-of-a-cosine", "shape", seam="falling", choices=COSINE)
def root_of_a_cosine(self: Hooks, step: int) -> float:
    """The cosine is not shifted and halved. The rate falls late and steeply."""
    return math.sqrt(max(0.0, self.correct.falling(step)) * self.peak_rate())


@fault("schedule.stops-at-the-last-step", "end", seam="join_rates")
def stops_at_the_last_step(self: Hooks, step: int) -> float:
    """The rate is 0 from the last step on. A run that goes on learns nothing more."""
    return self.correct.join_rates(step) if step < self.sizes.total_steps else 0.0


@fault(
    "schedule.divided-by-one-less",
    "warm-up-of-one",
    seam="join_rates",
    origin="M026",
    kind="loud",
)
def divided_by_one_less(self: Hooks, step: int) -> float:
    """The warm-up divides by the steps after its first. A warm-up of one step fails."""
    first = self.correct.rising(1)
    slope = (self.peak_rate() - first) / (self.warmup_steps() - 1)
    return first + slope * (step - 1) if step < self.warmup_steps() else self.falling(step)


@fault("schedule.one-step-without-peak", "warm-up-of-one", seam="falling")
def one_step_without_peak(self: Hooks, step: int) -> float:
    """A warm-up of one step is taken for none. The first rate is half of the peak."""
    return self.correct.falling(step) * (0.5 if self.warmup_steps() == 1 else 1.0)
