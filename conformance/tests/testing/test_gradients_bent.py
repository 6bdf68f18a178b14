"""Differences of a function whose slope changes within their steps."""

from functools import partial

import numpy as np
import pytest
import torch
from gradient_cases import seeded
from torch.nn.functional import layer_norm

from attentest.harness.errors import Violation
from attentest.harness.subject import Probe, Subject
from attentest.testing.gradients import agrees_with_differences
from attentest_spec import Sizes
from attentest_spec.torch import of_function

NEAR = 1.0 + 1e-4 * np.random.default_rng(5).normal(size=(2, 3, 4))
"""Rows whose deviation is changed by a hundredth in a step of 1e-6."""

normed = partial(layer_norm, normalized_shape=(4,), eps=1e-12)


def probe_of(function) -> Probe:
    return Subject(of_function(function, "layer_norm")).part("layer_norm", Sizes(d_model=4))


def test_slope_that_changes_within_the_steps_is_no_disagreement():
    probe = probe_of(normed)
    agrees_with_differences(probe, NEAR, draw=seeded(probe))


def test_gradient_that_is_wrong_by_a_millionth_disagrees():
    class Scaled(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, gradient):
            return gradient * (1 + 1e-6)

    probe = probe_of(lambda x: normed(Scaled.apply(x)))
    with pytest.raises(Violation, match="along a random direction"):
        agrees_with_differences(probe, NEAR, draw=seeded(probe))


KINKS = np.logspace(-7.7, -4, 200)
"""Distances of kinks from a point: no step of the usual two has none of them."""


def bent(x: torch.Tensor) -> torch.Tensor:
    """Return x with a relu for each kink, which are all on the same side of every number."""
    places = torch.as_tensor(NEAR)[..., None] + torch.as_tensor(KINKS) * 3
    return x + torch.relu(x[..., None] - places).sum(-1)


@pytest.mark.parametrize("factor", [1.0, 1.001])
def test_many_kinks_within_the_steps_are_no_disagreement(factor):
    class Scaled(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, gradient):
            return gradient * factor

    probe = probe_of(lambda x: bent(Scaled.apply(x)))
    if factor == 1.0:
        agrees_with_differences(probe, NEAR, draw=seeded(probe))
        return
    with pytest.raises(Violation, match="along a random direction"):
        agrees_with_differences(probe, NEAR, draw=seeded(probe))
