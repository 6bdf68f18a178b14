"""Schedulers that give the optimiser no rate until they are stepped."""

from attentest.judging.bench import Bench
from attentest.judging.judge import judge
from attentest.targets.adapt import Reading
from attentest.targets.adapt.adaptation import adapt
from attentest_spec.clauses import clauses

CLAUSES = [slug for slug in clauses() if slug.startswith("schedule.")]


class Stepwise:
    def __init__(self, optimizer):
        self.optimizer = optimizer
        self.step_num = 0

    def _get_lr(self):
        raise NotImplementedError

    def step(self, metrics=None):
        self.step_num += 1
        for group in self.optimizer.param_groups:
            group["lr"] = self._get_lr()


class NoamScheduler(Stepwise):
    def __init__(self, optimizer, d_model, warmup_steps, scale=1.0):
        super().__init__(optimizer)
        self.d_model, self.warmup_steps, self.scale = d_model, warmup_steps, scale

    def _get_lr(self):
        rising = self.step_num * self.warmup_steps ** (-1.5)
        return self.scale * self.d_model ** (-0.5) * min(self.step_num ** (-0.5), rising)


class WrongNoamScheduler(NoamScheduler):
    def _get_lr(self):
        rising = self.step_num * self.warmup_steps ** (-0.5)
        return self.scale * self.d_model ** (-0.5) * min(self.step_num ** (-0.5), rising)


class NoamSchedulerOfTorchOrder(NoamScheduler):
    def __init__(self, optimizer, d_model, warmup_steps, scale=1.0):
        super().__init__(optimizer, d_model, warmup_steps, scale)
        self.step()


def _broken(thing):
    backend = adapt(thing, Reading())
    bench = Bench(backend)
    return backend, [slug for slug in CLAUSES if judge(bench, slug).status.fails]


def test_a_scheduler_that_gives_no_rate_when_built_is_stepped_before_the_optimiser():
    backend, broken = _broken(NoamScheduler)
    assert not broken
    assert any("called before the step of the optimiser" in one for one in backend.assumed)
    assert "first=True" in backend.written()


def test_a_scheduler_that_gives_its_first_rate_when_built_is_stepped_after_the_optimiser():
    backend, broken = _broken(NoamSchedulerOfTorchOrder)
    assert not broken
    assert not any("called before" in one for one in backend.assumed)


def test_a_mistake_in_a_scheduler_that_is_stepped_first_is_found():
    _, broken = _broken(WrongNoamScheduler)
    assert "schedule.formula" in broken
    assert "schedule.first-step" in broken
