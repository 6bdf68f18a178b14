"""The optimiser of the spec and its clipping compared with those of torch and optax."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from attentest_spec.choices import Choices, Value
from attentest_spec.optimiser import gradient_clipping, optimiser
from attentest_spec.setting import Floats, Setting
from attentest_spec.sizes import Sizes

DECAY = 0.1
UPDATES = 100


def drawn() -> tuple[Floats, Floats, Floats]:
    rng = np.random.default_rng(3)
    scales = np.array([1.0, 1e-6, 1e3, 1e-9, 1.0])
    rates = 0.01 * (1 + np.arange(UPDATES) % 4)
    return rng.normal(size=5), rng.normal(size=(UPDATES, 5)) * scales, rates


def spec(**choices: Value) -> Floats:
    given = Setting(Sizes(weight_decay=DECAY), Choices().but(**choices))
    return optimiser(given, *drawn())


def by_torch(make: Callable[..., Any]) -> Floats:
    start, gradients, rates = drawn()
    held = torch.nn.Parameter(torch.tensor(start))
    optimizer, found = make([held]), []
    for gradient, rate in zip(gradients, rates, strict=True):
        optimizer.param_groups[0]["lr"] = rate
        held.grad = torch.tensor(gradient)
        optimizer.step()
        found.append(held.detach().numpy().copy())
    return np.array(found)


def test_adam_of_torch() -> None:
    found = by_torch(lambda held: torch.optim.Adam(held, betas=(0.9, 0.98), eps=1e-9))
    np.testing.assert_allclose(found, spec(), rtol=0, atol=1e-12)


def test_coupled_decay_is_that_of_torch() -> None:
    found = by_torch(
        lambda held: torch.optim.Adam(held, betas=(0.8, 0.999), eps=1e-8, weight_decay=DECAY)
    )
    wanted = spec(adam_beta1=0.8, adam_beta2=0.999, adam_epsilon=1e-8, weight_decay="coupled")
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-12)


def test_decoupled_decay_is_adamw_of_torch() -> None:
    found = by_torch(
        lambda held: torch.optim.AdamW(held, betas=(0.9, 0.98), eps=1e-9, weight_decay=DECAY)
    )
    np.testing.assert_allclose(found, spec(weight_decay="decoupled"), rtol=0, atol=1e-12)


def test_optax_adds_its_second_epsilon_inside_the_root() -> None:
    optax = pytest.importorskip("optax")
    jax = pytest.importorskip("jax")
    with jax.enable_x64(True):
        for places, option in (
            ({"eps": 1e-9}, "outside-root"),
            ({"eps_root": 1e-9}, "inside-root"),
        ):
            start, gradients, rates = drawn()
            scaling = optax.scale_by_adam(b1=0.9, b2=0.98, **({"eps": 0.0} | places))
            values = jax.numpy.asarray(start)
            state, found = scaling.init(values), []
            for gradient, rate in zip(gradients, rates, strict=True):
                update, state = scaling.update(jax.numpy.asarray(gradient), state)
                values = values - rate * update
                found.append(np.asarray(values))
            wanted = spec(adam_epsilon_place=option)
            np.testing.assert_allclose(np.array(found), wanted, rtol=0, atol=1e-10)


@pytest.mark.parametrize("limit", [0.5, 2.0, 100.0])
def test_clipping_is_that_of_torch(limit: float) -> None:
    gradients, groups = np.random.default_rng(5).normal(size=12), np.array([3, 7, 2])
    parameters = [torch.nn.Parameter(torch.zeros(int(one))) for one in groups]
    for parameter, part in zip(
        parameters, torch.tensor(gradients).split(groups.tolist()), strict=True
    ):
        parameter.data = parameter.data.double()
        parameter.grad = part.clone()
    torch.nn.utils.clip_grad_norm_(iter(parameters), limit)
    found = np.concatenate([one.grad.numpy() for one in parameters if one.grad is not None])
    given = Setting(choices=Choices(clip_epsilon=1e-6))
    wanted = gradient_clipping(given, gradients, groups, np.array(limit))
    np.testing.assert_allclose(found, wanted, rtol=1e-14)
