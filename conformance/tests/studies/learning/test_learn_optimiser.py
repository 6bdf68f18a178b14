"""Adam, against its closed form and torch's; the rates, against the paper's formula."""

import numpy as np
import pytest
import torch

from attentest.studies.learning.optimiser import Adam, Schedule

STEPS, ROOM = 25, 16.0


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("betas", [(0.9, 0.98), (0.7, 0.999)])
def test_steps_are_those_of_torch(dtype, betas):
    rng = np.random.default_rng(3)
    start = {name: rng.normal(size=shape).astype(dtype) for name, shape in SHAPES.items()}
    ours, adam = dict(start), Adam(*betas)
    theirs = {name: torch.nn.Parameter(torch.tensor(one)) for name, one in start.items()}
    torch_adam = torch.optim.Adam(theirs.values(), lr=1.0, betas=betas, eps=adam.epsilon)
    moved = 0.0
    for step in range(1, STEPS + 1):
        rate = Schedule(8, 10).rate(step)
        gradients = {name: rng.normal(size=one.shape).astype(dtype) for name, one in start.items()}
        for name, one in theirs.items():
            one.grad = torch.tensor(gradients[name])
        torch_adam.param_groups[0]["lr"] = rate
        torch_adam.step()
        ours = adam.update(ours, gradients, step, rate)
        moved += rate
    # Each step moves a number by about its rate, in a handful of roundings.
    bound = ROOM * np.finfo(dtype).eps * (moved + max(abs(one).max() for one in start.values()))
    for name, one in theirs.items():
        assert ours[name].dtype == dtype
        np.testing.assert_allclose(ours[name], one.detach().numpy(), rtol=0, atol=bound)


SHAPES = {"matrix": (4, 3), "bias": (5,)}


def test_the_first_step_is_the_rate_whatever_the_gradient():
    adam, gradient = Adam(), np.array([1e-3, -7.0, 1e6])
    after = adam.update({"w": np.zeros(3)}, {"w": gradient}, 1, 0.25)["w"]
    wanted = -0.25 * gradient / (abs(gradient) + adam.epsilon)
    np.testing.assert_allclose(after, wanted, rtol=8 * np.finfo(np.float64).eps)


def test_parameter_without_gradient_does_not_move():
    before = np.array([1.5, -2.0])
    after = Adam().update({"w": before}, {"w": np.zeros(2)}, 1, 0.25)["w"]
    np.testing.assert_array_equal(after, before)


def test_the_rate_of_the_paper_rises_in_a_line_and_falls_with_the_root():
    rate = Schedule(d_model=512, warmup=4000).rate
    assert rate(4000) == pytest.approx(512**-0.5 * 4000**-0.5)
    assert rate(1000) == pytest.approx(rate(4000) / 4)
    assert rate(16000) == pytest.approx(rate(4000) / 2)
    assert max(map(rate, range(1, 20000, 7))) <= rate(4000)


def test_a_constant_rate_is_constant():
    rate = Schedule(d_model=512, warmup=4000, constant=0.003).rate
    assert {rate(1), rate(4000), rate(100_000)} == {0.003}
