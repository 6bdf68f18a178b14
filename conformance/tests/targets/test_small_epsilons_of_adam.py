"""Optimisers whose epsilon is too small to show where it is added."""

import torch

from attentest.judging.bench import Bench
from attentest.judging.judge import judge
from attentest.results.verdict import Status
from attentest.targets.adapt.adaptation import adapt

CLAUSES = ("optimiser.epsilon-place", "optimiser.first-update", "optimiser.formula")


class Adam(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-16):
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps})

    def update(self, first, second, corrections, eps):
        small, large = corrections
        return (large**0.5 / small) * first / (second.sqrt() + eps)

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            (b1, b2), eps = group["betas"], group["eps"]
            for one in group["params"]:
                kept = self.state[one]
                if not kept:
                    kept.update(step=0, m=torch.zeros_like(one), v=torch.zeros_like(one))
                kept["step"] += 1
                kept["m"].mul_(b1).add_(one.grad, alpha=1 - b1)
                kept["v"].mul_(b2).addcmul_(one.grad, one.grad, value=1 - b2)
                left = 1 - b1 ** kept["step"], 1 - b2 ** kept["step"]
                one.sub_(group["lr"] * self.update(kept["m"], kept["v"], left, eps))


class WithoutCorrection(Adam):
    def update(self, first, second, corrections, eps):
        return first / (second.sqrt() + eps)


def statuses(thing):
    bench = Bench.for_status(adapt(thing, name="Adam"), effort=0.5)
    return [judge(bench, one).status for one in CLAUSES]


def test_place_of_a_small_epsilon_is_measured_with_a_larger_one():
    assert all(one.conforms for one in statuses(Adam))


def test_updates_without_correction_are_a_violation():
    assert Status.VIOLATION in statuses(WithoutCorrection)
