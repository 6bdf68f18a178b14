"""Optimisers whose constructor requires its constants, in a file of private classes alone."""

import pytest
from mistaken_code import adapted, broken, edited

from attentest.targets.definitions import definitions
from attentest.targets.file_modules import load

ADAM = """
import torch


class _Adam:
    def __init__(self, params, lr: float, betas: tuple, eps: float, weight_decay: float):
        self.params = list(params)
        self.lr, self.eps, self.wd = lr, eps, weight_decay
        self.beta1, self.beta2 = betas
        self.m = [torch.zeros_like(p) for p in self.params]
        self.v = [torch.zeros_like(p) for p in self.params]
        self.t = 0

    def step(self):
        self.t += 1
        with torch.no_grad():
            for i, p in enumerate(self.params):
                g = p.grad + self.wd * p
                self.m[i] = self.beta1 * self.m[i] + (1.0 - self.beta1) * g
                self.v[i] = self.beta2 * self.v[i] + (1.0 - self.beta2) * g**2
                m_hat = self.m[i] / (1.0 - self.beta1**self.t)
                v_hat = self.v[i] / (1.0 - self.beta2**self.t)
                p -= self.lr * m_hat / (v_hat.sqrt() + self.eps)
"""


def test_required_constants_are_given_to_an_optimiser(tmp_path):
    assert not broken(adapted(tmp_path, "_Adam", ADAM), "optimiser.formula")


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("self.v[i] / (1.0 - self.beta2**self.t)", "self.v[i]"),
        ("(1.0 - self.beta1) * g\n", "g\n"),
    ],
)
def test_mistakes_in_such_an_optimiser_are_detected(tmp_path, right, wrong):
    mistaken = edited(ADAM, (right, wrong))
    assert broken(adapted(tmp_path, "_Adam", mistaken), "optimiser.formula")


def test_private_classes_are_definitions_where_no_public_one_is(tmp_path):
    (tmp_path / "alone.py").write_text(ADAM)
    assert [name for name, _ in definitions(load(tmp_path / "alone.py"))] == ["_Adam"]
    (tmp_path / "both.py").write_text(f"{ADAM}\n\nclass Other:\n    pass\n")
    assert [name for name, _ in definitions(load(tmp_path / "both.py"))] == ["Other"]


REFUSES = edited(
    ADAM.replace("_Adam", "Adam"),
    (
        "        self.params =",
        "        if lr <= 0.0:\n            raise ValueError(lr)\n        self.params =",
    ),
)


def test_rate_of_0_is_that_of_a_step_where_a_constructor_refuses_it(tmp_path):
    assert not broken(adapted(tmp_path, "Adam", REFUSES), "optimiser.zero-rate")


def test_step_that_moves_at_a_rate_of_0_is_detected(tmp_path):
    mistaken = edited(REFUSES, ("p -= self.lr * m_hat", "p -= max(self.lr, 1e-3) * m_hat"))
    assert broken(adapted(tmp_path, "Adam", mistaken), "optimiser.zero-rate")
