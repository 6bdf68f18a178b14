"""The loss, against its closed forms and against torch's."""

import numpy as np
import pytest
import torch
from torch.nn.functional import cross_entropy as torch_cross_entropy

from attentest.studies.learning.loss import cross_entropy
from attentest_spec.generator import normalised

KINDS = ("probabilities", "log-probabilities", "logits")
B, T, V = 3, 5, 7
ROUNDINGS = 8 * (V + B * T) * np.finfo(np.float64).eps
"""Sums over V tokens and B x T targets, with a few roundings a term."""


def drawn(scale=1.0):
    rng = np.random.default_rng(5)
    target = rng.integers(1, V, size=(B, T))
    target[1, 3:] = target[2, 1:] = 0
    return scale * rng.normal(size=(B, T, V)), target


def of_torch(logits, target, kind, smoothing):
    """Return torch's loss and its gradient by what a generator of the kind returns."""
    given = torch.tensor(normalised(kind, logits), requires_grad=True)
    logs = {"probabilities": torch.log, "log-probabilities": lambda one: one}
    scores = logs.get(kind, lambda one: torch.log_softmax(one, dim=-1))(given)
    smooth = scores.mean(dim=-1) * smoothing
    right = scores.gather(-1, torch.tensor(target)[..., None])[..., 0] * (1 - smoothing)
    kept = torch.tensor(target != 0)
    loss = -((right + smooth) * kept).sum() / kept.sum()
    loss.backward()
    return loss.item(), given.grad.numpy()


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("kind", KINDS)
def test_loss_and_gradient_are_those_of_torch(kind, smoothing):
    logits, target = drawn()
    loss, gradient = cross_entropy(normalised(kind, logits), target, kind, 0, smoothing)
    wanted, pulled = of_torch(logits, target, kind, smoothing)
    assert loss == pytest.approx(wanted, rel=ROUNDINGS)
    np.testing.assert_allclose(gradient, pulled, rtol=ROUNDINGS, atol=ROUNDINGS)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_the_loss_of_logits_is_that_of_the_function_that_people_call(smoothing):
    logits, target = drawn(scale=30.0)
    given = torch.tensor(logits, requires_grad=True)
    wanted = torch_cross_entropy(
        given.flatten(0, 1),
        torch.tensor(target).flatten(),
        ignore_index=0,
        label_smoothing=smoothing,
    )
    wanted.backward()
    loss, gradient = cross_entropy(logits, target, "logits", 0, smoothing)
    assert loss == pytest.approx(wanted.item(), rel=ROUNDINGS)
    np.testing.assert_allclose(gradient, given.grad.numpy(), rtol=ROUNDINGS, atol=ROUNDINGS)


@pytest.mark.parametrize("kind", KINDS)
def test_one_that_knows_nothing_loses_the_logarithm_of_the_vocabulary(kind):
    _, target = drawn()
    output = normalised(kind, np.zeros((B, T, V)))
    loss, _ = cross_entropy(output, target, kind, 0)
    assert loss == pytest.approx(np.log(V), rel=ROUNDINGS)


@pytest.mark.parametrize("kind", KINDS)
def test_pads_cost_nothing_and_pull_at_nothing(kind):
    logits, target = drawn()
    output = normalised(kind, logits)
    loss, gradient = cross_entropy(output, target, kind, 0, 0.1)
    assert not gradient[target == 0].any()
    output[target == 0] = 1e-3
    assert cross_entropy(output, target, kind, 0, 0.1)[0] == loss


def test_huge_logits_cost_what_lies_between_them():
    logits = np.array([[[1e4, 0.0, -1e4]]])
    for token, cost in ((1, 1e4), (2, 2e4)):
        loss, gradient = cross_entropy(logits, np.array([[token]]), "logits", 0)
        assert loss == cost
        assert np.isfinite(gradient).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_probability_of_zero_costs_much_and_not_infinity(dtype):
    output = np.array([[[1.0, 0.0]]], dtype=dtype)
    loss, gradient = cross_entropy(output, np.array([[1]]), "probabilities", 0)
    assert loss == pytest.approx(-np.log(np.float64(np.finfo(dtype).tiny)))
    assert np.isfinite(gradient.astype(dtype)).all()


def test_a_logarithm_of_minus_infinity_where_nothing_is_wanted_costs_nothing():
    output = np.array([[[0.0, -np.inf]]])
    assert cross_entropy(output, np.array([[0]]), "log-probabilities", 9)[0] == 0.0


def test_targets_that_are_all_pads_cost_nothing():
    logits, target = drawn()
    loss, gradient = cross_entropy(logits, 0 * target, "logits", 0)
    assert loss == 0.0
    assert not gradient.any()
