"""Optimisers and functions that clip gradients, read as people write them."""

from collections.abc import Callable
from typing import Any

import pytest
import torch

from attentest.judging.bench import Bench
from attentest.judging.judge import judge
from attentest.targets.adapt import Reading, Unclear
from attentest.targets.adapt.adaptation import adapt

ADAM = ("optimiser.formula", "optimiser.first-update", "optimiser.bias-correction")
CLIPPING = ("optimiser.clipping-formula", "optimiser.clipping-global", "optimiser.clipping-zeros")


class Adam:
    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
        self.params, self.lr, self.betas, self.eps = list(params), lr, betas, eps
        self.m = [torch.zeros_like(one) for one in self.params]
        self.v = [torch.zeros_like(one) for one in self.params]
        self.t = 0

    def step(self):
        self.t += 1
        b1, b2 = self.betas
        with torch.no_grad():
            for i, p in enumerate(self.params):
                self.m[i] = b1 * self.m[i] + (1 - b1) * p.grad
                self.v[i] = b2 * self.v[i] + (1 - b2) * p.grad**2
                m, v = self.m[i] / (1 - b1**self.t), self.v[i] / (1 - b2**self.t)
                p -= self.lr * m / (v.sqrt() + self.eps)


class MyAdam:
    def __init__(self, parameters, beta1=0.9, beta2=0.98, epsilon=1e-9):
        self.held, self.beta1, self.beta2, self.epsilon = list(parameters), beta1, beta2, epsilon
        self.state = {}

    def step(self, lr):
        for p in self.held:
            m, v, t = self.state.get(p, (0.0, 0.0, 0))
            m = self.beta1 * m + (1 - self.beta1) * p.grad
            v = self.beta2 * v + (1 - self.beta2) * p.grad.square()
            t += 1
            self.state[p] = (m, v, t)
            ratio = (1 - self.beta2**t) ** 0.5 / (1 - self.beta1**t)
            p.data -= lr * ratio * m / (v.sqrt() + self.epsilon)


def clip_gradients(parameters, max_norm):
    grads = [p.grad for p in parameters]
    total = sum(g.pow(2).sum() for g in grads) ** 0.5
    if total > max_norm:
        for g in grads:
            g.mul_(max_norm / total)


def grad_clipping(net, theta):
    params = [p for p in net.parameters() if p.requires_grad]
    norm = torch.sqrt(sum(torch.sum(p.grad**2) for p in params))
    if norm > theta:
        for param in params:
            param.grad[:] *= theta / norm


def clip_grads(grads, limit):
    norm = torch.cat([g.flatten() for g in grads]).norm()
    return [g * torch.clamp(limit / (norm + 1e-6), max=1.0) for g in grads]


def wrong(backend: Any, slugs: tuple[str, ...]) -> list[str]:
    bench = Bench.for_status(backend, effort=0.0)
    return [slug for slug in slugs if judge(bench, slug).status.value == "violation"]


@pytest.mark.parametrize(
    ("thing", "slugs", "shown"),
    [
        (Adam, ADAM, {"adam_beta2": 0.999, "adam_epsilon": 1e-8}),
        (MyAdam, ADAM, {"adam_beta2": "0.98", "adam_epsilon_place": "uncorrected"}),
        (clip_gradients, CLIPPING, {"clip_epsilon": "none"}),
        (grad_clipping, CLIPPING, {"clip_epsilon": "none"}),
        (clip_grads, CLIPPING, {"clip_epsilon": 1e-6}),
    ],
    ids=lambda one: getattr(one, "__name__", ""),
)
def test_correct_code_conforms(
    thing: Callable[..., Any], slugs: tuple[str, ...], shown: dict[str, Any]
) -> None:
    backend = adapt(thing)
    assert {name: backend.choices[name] for name in shown} == shown
    assert wrong(backend, slugs) == []


def test_mistake_is_judged_by_the_constants_of_the_signature() -> None:
    class Adam(MyAdam):
        def step(self, lr):
            super().step(-lr)

    backend = adapt(Adam)
    assert backend.choices["adam_epsilon"] == "1e-9"
    assert "optimiser.first-update" in wrong(backend, ADAM)


def test_generator_that_is_read_twice_clips_nothing() -> None:
    def clip_gradients(parameters, max_norm):
        norm = sum(p.grad.pow(2).sum() for p in parameters) ** 0.5
        for p in parameters:
            p.grad *= min(1.0, max_norm / norm)

    assert "optimiser.clipping-formula" in wrong(adapt(clip_gradients), CLIPPING)


@pytest.mark.parametrize(
    ("code", "component", "question"),
    [
        (lambda x, y: None, "gradient_clipping", "Name its arguments so"),
        (lambda parameters, limit: 1 / 0, "gradient_clipping", "failed in a probing call"),
        (type("Odd", (), {}), "optimiser", "a method step"),
    ],
)
def test_code_that_does_not_say_enough_is_asked_about(
    code: Callable[..., Any], component: str, question: str
) -> None:
    with pytest.raises(Unclear, match=question):
        adapt(code, Reading(component=component), "own")


def test_wrong_adam_without_constants_is_asked_about() -> None:
    class Adam:
        def __init__(self, params):
            self.params, self.lr = list(params), 0.0

        def step(self):
            for p in self.params:
                p.data -= self.lr * p.grad

    with pytest.raises(Unclear, match="which constants it has"):
        adapt(Adam)


def clip_each(parameters, max_norm):
    for one in parameters:
        one.grad.mul_(min(1.0, max_norm / float(one.grad.norm())))


def clip_numbers(parameters, max_norm):
    for one in parameters:
        one.grad.clamp_(-max_norm, max_norm)


@pytest.mark.parametrize(
    ("code", "asked"), [(clip_each, "by its own norm"), (clip_numbers, "by its own size")]
)
def test_clipping_without_a_global_norm_is_a_question(code: Any, asked: str) -> None:
    with pytest.raises(Unclear, match=asked):
        adapt(code, Reading(component="gradient_clipping"))
    judged = adapt(code, Reading(component="gradient_clipping", anyway=True))
    assert "optimiser.clipping-global" in wrong(judged, CLIPPING)


def test_adapter_of_an_optimiser_is_a_file() -> None:
    names: dict[str, Any] = {}
    exec(compile(adapt(torch.optim.AdamW).written(), "adapter.py", "exec"), names)
    assert dict(names["backend"].choices)["weight_decay"] == "decoupled"
