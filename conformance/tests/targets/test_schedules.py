"""Schedules of learning rates, read from functions and classes as people write them."""

import math
from collections.abc import Callable
from typing import Any

import pytest
from proof import share

from attentest.judging.bench import Bench
from attentest.judging.judge import judge
from attentest.targets.adapt import Reading, Unclear
from attentest.targets.adapt.adaptation import adapt
from attentest_spec import Sizes, Unsupported
from attentest_spec.clauses import clauses

CLAUSES = [slug for slug in clauses() if slug.startswith("schedule.")]


def rate(step, model_size, factor, warmup):
    if step == 0:
        step = 1
    return factor * (model_size ** (-0.5) * min(step ** (-0.5), step * warmup ** (-1.5)))


def get_lr(it, max_lr, warmup_iters, max_iters):
    if it < 0 or warmup_iters < 1 or max_iters <= warmup_iters:
        raise ValueError(f"impossible: {it}, {warmup_iters}, {max_iters}")
    if it + 1 < warmup_iters:
        return max_lr * (it + 1) / warmup_iters
    done = (it + 1 - warmup_iters) / (max_iters - warmup_iters)
    return max_lr * 0.5 * (1.0 + math.cos(math.pi * min(done, 1.0)))


class NoamOpt:
    def __init__(self, model_size, factor, warmup, optimizer):
        self.optimizer = optimizer
        self._step = 0
        self.warmup = warmup
        self.factor = factor
        self.model_size = model_size

    def step(self):
        self._step += 1

    def rate(self, step=None):
        if step is None:
            step = self._step
        rising = step * self.warmup ** (-1.5)
        return self.factor * self.model_size ** (-0.5) * min(step ** (-0.5), rising)


class LRSchedule:
    def __init__(self, d_model, warmup_steps=4000):
        self.d_model, self.warmup_steps = d_model, warmup_steps

    def __call__(self, step):
        first, second = 1 / math.sqrt(step), step * self.warmup_steps**-1.5
        return min(first, second) / math.sqrt(self.d_model)


class ScheduledOptim:
    def __init__(self, optimizer, d_model, n_warmup_steps):
        self.d_model, self.n_warmup_steps = d_model, n_warmup_steps

    def get_lr(self, step_num):
        return self.d_model**-0.5 * min(step_num**-0.5, step_num * self.n_warmup_steps**-1.5)


def lr_lambda(current_step, num_warmup_steps, num_training_steps):
    if num_warmup_steps < 0 or num_training_steps <= num_warmup_steps:
        raise ValueError(f"{num_warmup_steps} of {num_training_steps}")
    if current_step < num_warmup_steps:
        return current_step / max(1, num_warmup_steps)
    left = num_training_steps - current_step
    return max(0.0, left / max(1, num_training_steps - num_warmup_steps))


def wrong(backend: Any) -> dict[str, str]:
    bench = Bench.for_status(backend, effort=0.0)
    found = {slug: judge(bench, slug) for slug in CLAUSES}
    return {slug: one.message for slug, one in found.items() if one.status.value == "violation"}


@share(2)
@pytest.mark.parametrize(
    ("thing", "schedule"),
    [
        (rate, "noam"),
        (NoamOpt, "noam"),
        (LRSchedule, "noam"),
        (ScheduledOptim, "noam"),
        (get_lr, "cosine"),
        (lr_lambda, "linear"),
    ],
    ids=lambda one: getattr(one, "__name__", one),
)
def test_correct_code_conforms(thing: Callable[..., Any], schedule: str) -> None:
    backend = adapt(thing)
    assert dict(backend.choices)["schedule"] == schedule
    assert wrong(backend) == {}


def test_steps_that_count_from_zero_are_measured() -> None:
    assert "its steps count from 0, as measured" in adapt(get_lr).understood
    assert "steps count from 1" in adapt(rate).understood


def test_code_without_a_factor_is_judged_without_one() -> None:
    assert not adapt(LRSchedule).limits.rate_factor
    assert adapt(NoamOpt).limits.rate_factor
    assert not adapt(ScheduledOptim).limits.rate_factor


def test_mistake_in_the_schedule_of_the_paper_is_found() -> None:
    def noam(step, d_model, warmup):
        return d_model**-0.5 * min(step**-0.5, step * warmup**-1.0)

    backend = adapt(noam)
    assert "meant as the schedule of the paper" in backend.assumed[0]
    assert "schedule.warm-up-length" in wrong(backend)


def test_unknown_schedule_without_a_width_is_asked_about() -> None:
    def get_lr(step, peak, warmup):
        return peak * min(step / warmup, (warmup / step) ** 2)

    with pytest.raises(Unclear, match="--choice schedule=NAME"):
        adapt(get_lr)
    said = adapt(get_lr, Reading(choices={"schedule": "inverse-root"}))
    assert "schedule.shape" in wrong(said)


@pytest.mark.parametrize(
    ("code", "question"),
    [
        (lambda step, d_model: step**-0.5, "--argument warmup=NAME"),
        (lambda x, y, warmup: 1.0, "--argument step=NAME"),
        (lambda step, warmup, odd: 1.0, "--argument SIZE=odd"),
        (lambda step, warmup: 1 / 0, "failed in a probing call"),
        (lambda step, d_model, warmup: 2 * rate(step, d_model, 1.0, warmup), "2 times"),
    ],
)
def test_code_that_does_not_say_enough_is_asked_about(
    code: Callable[..., Any], question: str
) -> None:
    with pytest.raises(Unclear, match=question):
        adapt(code, Reading(component="learning_rate"), "lr")


def test_function_of_another_kind_is_no_schedule() -> None:
    def rate(x, p):
        return x

    with pytest.raises(Unclear, match="which component"):
        adapt(rate)


def test_adapter_is_written_as_a_file() -> None:
    names: dict[str, Any] = {}
    exec(compile(adapt(NoamOpt).written(), "adapter.py", "exec"), names)
    part = names["backend"].build("learning_rate", Sizes(d_model=4, warmup=4))
    assert float(part(4)) == pytest.approx(0.25)


def test_reproduction_calls_the_code_itself(capsys: pytest.CaptureFixture[str]) -> None:
    def noam(step, d_model, warmup):
        return d_model**-0.5 * step**-0.5

    found = judge(Bench(adapt(noam), diagnose=False), "schedule.warm-up-linear")
    assert found.counterexample is not None
    assert "noam(step=1, d_model=" in found.counterexample.code


class HalfOpt(NoamOpt):
    """Sets the rate and steps its optimiser."""

    def step(self):
        self._step += 1
        self.optimizer.param_groups[0]["lr"] = self.rate(self._step)
        self.optimizer.step()


def test_adapter_and_reproduction_of_a_schedule_that_counts_itself() -> None:
    names: dict[str, Any] = {}
    text = adapt(HalfOpt).written()
    exec(compile(text, "adapter.py", "exec"), names)
    part = names["backend"].build("learning_rate", Sizes(d_model=4, warmup=4))
    assert [float(part(step)) for step in (4, 1, 2)] == pytest.approx([0.25, 0.0625, 0.125])

    class Constant(HalfOpt):
        def rate(self, step=None):
            return 0.5 * super().rate(1 if step == 3 else step)

    found = judge(Bench(adapt(Constant), diagnose=False), "schedule.warm-up-linear")
    assert found.counterexample is not None
    assert "class Updates:" in found.counterexample.code


def test_rates_of_updates_that_are_not_made_are_absent() -> None:
    part = adapt(HalfOpt).build("learning_rate", Sizes())
    for step in (0, 10**6):
        with pytest.raises(Unsupported, match="counts its steps itself"):
            part(step)


learning_rate, warmup_iters, lr_decay_iters, min_lr = 6e-4, 2000, 600000, 6e-5
d_model, WARMUP = 512, 4000


def counted_from_zero(it):
    if it < warmup_iters:
        return learning_rate * (it + 1) / (warmup_iters + 1)
    if it > lr_decay_iters:
        return min_lr
    done = (it - warmup_iters) / (lr_decay_iters - warmup_iters)
    return min_lr + 0.5 * (1.0 + math.cos(math.pi * done)) * (learning_rate - min_lr)


def from_nothing(it):
    if it < warmup_iters:
        return learning_rate * it / warmup_iters
    if it > lr_decay_iters:
        return min_lr
    done = (it - warmup_iters) / (lr_decay_iters - warmup_iters)
    return min_lr + 0.5 * (1.0 + math.cos(math.pi * done)) * (learning_rate - min_lr)


def of_the_paper(step):
    return d_model**-0.5 * min(step**-0.5, step * WARMUP**-1.5)


@pytest.mark.parametrize(
    ("function", "schedule"),
    [(counted_from_zero, "cosine"), (from_nothing, "cosine"), (of_the_paper, "noam")],
)
def test_schedule_of_constants_is_judged(function, schedule):
    backend = adapt(function, name="get_lr")
    assert backend.choices.get("schedule", "noam") == schedule
    assert "warmup=" in backend.summary
    bench = Bench.for_status(backend, effort=0.2)
    wrong = [slug for slug in CLAUSES if judge(bench, slug).status.fails]
    assert not wrong
    assert (warmup_iters, min_lr, WARMUP) == (2000, 6e-5, 4000)  # those of the file stay


def test_last_rate_that_is_a_constant_is_assumed():
    assumed = adapt(from_nothing, name="get_lr").assumed
    assert any("min_lr=0" in one for one in assumed)


def test_schedule_of_constants_is_written_as_code():
    written = adapt(counted_from_zero, name="get_lr").written()
    assert "with_constants(" in written
    assert "warmup_iters=sizes.warmup - 1" in written
    compile(written, "adapter.py", "exec")


def wrong_cosine(it):
    if it < warmup_iters:
        return learning_rate * it / warmup_iters
    done = (it - warmup_iters) / (lr_decay_iters - warmup_iters)
    return min_lr + 0.5 * (1.0 + math.sin(math.pi * done)) * (learning_rate - min_lr)


def half_warm(it):
    if it < warmup_iters:
        return learning_rate * it / (2 * warmup_iters)
    done = (it - warmup_iters) / (lr_decay_iters - warmup_iters)
    return min_lr + 0.5 * (1.0 + math.cos(math.pi * done)) * (learning_rate - min_lr)


def warm_by_the_decay(it):
    if it < warmup_iters:
        return learning_rate * it / lr_decay_iters
    done = (it - warmup_iters) / (lr_decay_iters - warmup_iters)
    return min_lr + 0.5 * (1.0 + math.cos(math.pi * done)) * (learning_rate - min_lr)


@pytest.mark.parametrize("function", [wrong_cosine, half_warm, warm_by_the_decay])
def test_schedule_of_constants_that_fits_none_is_asked_about(function):
    with pytest.raises(Unclear, match="no listed schedule"):
        adapt(function, name="get_lr")
    backend = adapt(function, Reading(choices={"schedule": "cosine"}), "get_lr")
    bench = Bench.for_status(backend, effort=0.2)
    assert judge(bench, "schedule.formula").status == "violation"


def of_a_cycle(step, max_lr, warmup_iters, number_of_all):
    if step < warmup_iters:
        return max_lr * step / warmup_iters
    done = (step - warmup_iters) / (number_of_all - warmup_iters)
    return max_lr * 0.5 * (1.0 + math.cos(math.pi * min(done, 1.0)))


def test_last_step_by_another_name_is_found_by_the_numbers():
    backend = adapt(of_a_cycle, name="get_lr")
    assert any("number_of_all" in one for one in backend.understood)
    bench = Bench.for_status(backend, effort=0.2)
    assert judge(bench, "schedule.formula").status == "pass"
