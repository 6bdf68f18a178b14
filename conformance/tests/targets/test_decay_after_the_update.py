"""The order of update and decay in AdamW, and the form of its update that corrects the rate."""

import math

import torch

import attentest


class Base(torch.optim.Optimizer):
    """Adam whose rate is corrected, as in section 2 of its paper, with a decoupled decay."""

    first = True

    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.01):
        super().__init__(
            params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay}
        )

    def decay(self, group, p):
        """Multiply by 1 - rate times decay."""
        p.data -= group["lr"] * group["weight_decay"] * p.data

    def step(self, closure=None):
        """Update every parameter."""
        for group in self.param_groups:
            one, two = group["betas"]
            for p in group["params"]:
                state = self.state[p]
                step = state.get("step", 0) + 1
                mean = one * state.get("mean", 0.0) + (1 - one) * p.grad
                square = two * state.get("square", 0.0) + (1 - two) * p.grad**2
                rate = group["lr"] * math.sqrt(1 - two**step) / (1 - one**step)
                if self.first:
                    self.decay(group, p)
                p.data -= rate * mean / (square.sqrt() + group["eps"])
                if not self.first:
                    self.decay(group, p)
                state.update(step=step, mean=mean, square=square)


class AdamW(Base):
    """One that decays before the update."""


class LateAdamW(Base):
    """One that decays after the update."""

    first = False


class LateAdamWOfWeights(Base):
    """One that decays after the update, by the decay alone and not by the rate."""

    first = False

    def decay(self, group, p):
        """Multiply by 1 - decay."""
        p.data -= group["weight_decay"] * p.data


class DoubledAdamW(Base):
    """One that decays twice."""

    def decay(self, group, p):
        """Decay by twice the rate."""
        super().decay(group, p)
        super().decay(group, p)


SLUGS = ["optimiser.formula", "optimiser.first-update"]


def test_the_form_that_corrects_the_rate_conforms() -> None:
    assert attentest.check(AdamW, clauses=SLUGS).conforms


def test_a_decay_after_the_update_is_measured() -> None:
    report = attentest.check(LateAdamW, "optimiser", clauses=[*SLUGS, "optimiser.weight-decay"])
    assert report.conforms
    backend = attentest.adapted(LateAdamW, "optimiser")
    assert backend.choices["weight_decay"] == "decoupled-after"
    assert "weight_decay=decoupled-after" in " ".join(backend.assumed)


def test_a_decay_after_the_update_is_a_violation_where_another_is_declared() -> None:
    declared = {"weight_decay": "decoupled"}
    slugs = ["optimiser.weight-decay"]
    assert not attentest.check(LateAdamW, "optimiser", clauses=slugs, choices=declared).conforms


def test_a_wrong_decay_is_a_violation() -> None:
    assert not attentest.check(DoubledAdamW, "optimiser", clauses=SLUGS).conforms


def test_a_late_decay_without_the_rate_is_a_violation() -> None:
    assert not attentest.check(LateAdamWOfWeights, "optimiser", clauses=SLUGS).conforms
