"""Schedules that step the optimiser which they are given, under the name of an optimiser."""

import pytest

from attentest.judging.bench import Bench
from attentest.judging.judge import judge
from attentest.results.verdict import Status
from attentest.targets.adapt import Unclear
from attentest.targets.adapt.adaptation import adapt

FORMULA = "schedule.formula"


class WarmAdamOptimizer:
    def __init__(self, optimizer, model_dimension, num_of_warmup_steps):
        self.optimizer, self.dimension = optimizer, model_dimension
        self.warm, self.done = num_of_warmup_steps, 0

    def share(self):
        return min(self.done**-0.5, self.done * self.warm**-1.5)

    def step(self):
        self.done += 1
        for group in self.optimizer.param_groups:
            group["lr"] = self.dimension**-0.5 * self.share()
        self.optimizer.step()


class WithoutRoot(WarmAdamOptimizer):
    def share(self):
        return min(1 / self.done, self.done * self.warm**-1.5)


@pytest.mark.parametrize(
    ("thing", "status"), [(WarmAdamOptimizer, Status.PASS), (WithoutRoot, Status.VIOLATION)]
)
def test_schedule_with_the_name_of_an_optimiser_is_judged(thing, status):
    backend = adapt(thing, name="WarmAdamOptimizer")
    assert judge(Bench.for_status(backend, effort=0.3), FORMULA).status is status


class InTwoSteps(WarmAdamOptimizer):
    def step(self):
        self.optimizer.step()

    def update_lr(self):
        self.done += 1
        for group in self.optimizer.param_groups:
            group["lr"] = self.dimension**-0.5 * self.share()


class WithLayers(WarmAdamOptimizer):
    def __init__(self, optimizer, model_dimension, n_layers, num_of_warmup_steps):
        super().__init__(optimizer, model_dimension, num_of_warmup_steps)
        self.layers = n_layers

    def share(self):
        return super().share() / self.layers


def test_schedule_whose_rate_another_method_sets_is_one_question():
    with pytest.raises(Unclear, match="step leaves the rate as it is, and update_lr may set it"):
        adapt(InTwoSteps, name="InTwoSteps")


def test_number_that_gives_other_rates_is_no_last_step():
    with pytest.raises(Unclear, match="what the argument 'n_layers' of WithLayers carries"):
        adapt(WithLayers, name="WithLayers")


class NeverSet(WarmAdamOptimizer):
    def step(self):
        self.done += 1
        self.optimizer.step()


def test_schedule_that_sets_no_rate_is_a_violation():
    backend = adapt(NeverSet, name="NeverSet")
    assert judge(Bench.for_status(backend, effort=0.3), FORMULA).status is Status.VIOLATION
