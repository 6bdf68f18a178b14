"""Faults in the number of the step, and in what is kept between two of them."""

import struct

import torch
from torch import Tensor

from attentest.faults.fault import fault
from attentest.faults.reference_models import Hooks, Node


@fault("schedule.counted-from-zero", "first-step", seam="count_step", origin="M023")
def counted_from_zero(self: Hooks, step: int) -> int:
    """The counter starts at 0. The first update has the rate 0 and changes nothing."""
    return step - 1


@fault("schedule.first-step-twice", "first-step", seam="count_step", origin="M023")
def first_step_twice(self: Hooks, step: int) -> int:
    """The counter starts at 0, and 0 is replaced by 1. The first two updates have the same rate."""
    return max(1, step - 1)


@fault("schedule.one-step-ahead", "first-step", seam="count_step")
def one_step_ahead(self: Hooks, step: int) -> int:
    """The counter is increased before and after the update. Every rate comes one step early."""
    return step + 1


@fault("schedule.no-first-rate", "first-step", seam="rising", origin="M023")
def no_first_rate(self: Hooks, step: int) -> float:
    """The warm-up rises from 0 at step 1. The first update changes nothing."""
    return self.correct.rising(step) * (step > 1)


@fault("schedule.counts-its-calls", "any-order", seam="learning_rate", kind="state")
def counts_its_calls(self: Hooks, module: Node, step: int) -> Tensor:
    """The schedule counts its calls and ignores the step. A resumed run starts again at step 1."""
    self.memory["calls"] = self.memory.get("calls", 0) + 1
    return self.correct.learning_rate(module, self.memory["calls"])


@fault("schedule.never-back", "any-order", seam="learning_rate", kind="state")
def never_back(self: Hooks, module: Node, step: int) -> Tensor:
    """The largest step so far is used. A run that is resumed before it has the later rates."""
    self.memory["step"] = max(step, self.memory.get("step", step))
    return self.correct.learning_rate(module, self.memory["step"])


@fault("schedule.from-the-old-rate", "any-order", seam="learning_rate", origin="M026", kind="state")
def from_the_old_rate(self: Hooks, module: Node, step: int) -> Tensor:
    """Each rate is the old one times a ratio. Skipped or repeated steps change the rest."""
    before = self.memory.get("rate")
    now = self.correct.learning_rate(module, step)
    if before is not None and step > 1:
        now = before * now / self.correct.learning_rate(module, step - 1)
    self.memory["rate"] = now
    return now


@fault("schedule.settings-in-the-class", "own-settings", seam="check_schedule", kind="state")
def settings_in_the_class(self: Hooks) -> None:
    """The sizes are attributes of the class. A second schedule changes the rates of the first."""
    self.correct.check_schedule()
    type(self).sizes = vars(self).pop("sizes")


@fault("schedule.cached-by-step", "own-settings", seam="learning_rate", kind="state")
def cached_by_step(self: Hooks, module: Node, step: int) -> Tensor:
    """Rates are cached by their step alone. A second schedule has the rates of the first."""
    kind = type(self)
    cache = vars(kind).get("cache")
    if cache is None:
        cache = kind.cache = {}  # type: ignore[attr-defined]
    if step not in cache:
        cache[step] = self.correct.learning_rate(module, step)
    rate: Tensor = cache[step]
    return rate


@fault("schedule.step-of-32-bits", "large-steps", seam="count_step")
def step_of_32_bits(self: Hooks, step: int) -> int:
    """The step is counted in 32 bits. It becomes negative after 2,147,483,647 updates."""
    (counted,) = struct.unpack("<i", struct.pack("<I", self.correct.count_step(step) % 2**32))
    return abs(int(counted))


@fault("schedule.step-in-single-precision", "large-steps", seam="count_step")
def step_in_single_precision(self: Hooks, step: int) -> int:
    """The step is counted in float32. After 16,777,216 updates the rate no longer changes."""
    return int(torch.tensor(float(self.correct.count_step(step)), dtype=torch.float32))


@fault("schedule.infinite-at-zero", "step-below-one", seam="learning_rate", kind="value")
def infinite_at_zero(self: Hooks, module: Node, step: int) -> Tensor:
    """Step 0 has an infinite rate. One update with it destroys the weights."""
    if step == 0:
        return self.as_rate(float("inf"))
    return self.correct.learning_rate(module, step)


@fault("schedule.nan-at-zero", "step-below-one", seam="learning_rate")
def nan_at_zero(self: Hooks, module: Node, step: int) -> Tensor:
    """Step 0 has the rate 0 times infinity. The rate is NaN, and all weights with it."""
    if step == 0:
        return self.as_rate(float("nan"))
    return self.correct.learning_rate(module, step)


@fault("schedule.negative-at-zero", "step-below-one", seam="learning_rate")
def negative_at_zero(self: Hooks, module: Node, step: int) -> Tensor:
    """Step 0 lies below the line of the warm-up. The weights are moved up the gradient."""
    if step == 0:
        return -self.correct.learning_rate(module, 1)
    return self.correct.learning_rate(module, step)
