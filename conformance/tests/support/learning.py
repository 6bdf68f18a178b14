"""Small trainings for the tests of `attentest learn`."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from attentest.faults.reference_models import Fused, Plain, reference_backend
from attentest.studies.learning import Regime
from attentest.studies.learning.checkpoint import State
from attentest.studies.learning.initial import weights
from attentest.studies.learning.learner import Layout, Trainable
from attentest.studies.learning.training import Trainer
from attentest_spec import Backend
from attentest_spec.setting import Array, Floats

SMALL: dict[str, Any] = {"length": 5, "d_model": 8, "heads": 2, "d_ff": 12, "validation": 20}
"""Settings of a training that takes no time."""

PLAIN = reference_backend(Plain, {"tying": "none"}, "plain")
FUSED = reference_backend(Fused, {"tying": "none"}, "fused")


def small(**asked: Any) -> Regime:
    return Regime.of(**{"steps": 6, "every": 2, "precision": "float64", **SMALL, **asked})


def trained(backend: Backend, regime: Regime, seed: int = 0, state: State | None = None) -> State:
    trainer = Trainer.of(backend, regime, seed, state)
    return trainer.train(lambda state: None, lambda step: None)


def losses(state: State) -> Any:
    return np.array([[one.training or 0.0, one.validation] for one in state.points])


def moved_weights(layout: Layout, rng: np.random.Generator) -> dict[str, Floats]:
    """Return the weights of the start, each away from what it starts at."""
    start = weights(layout, 0).items()
    return {name: one + 0.1 * rng.normal(size=one.shape) for name, one in start}


def has_gradient_of_differences(
    part: Trainable,
    start: Mapping[str, Floats],
    inputs: tuple[Array, Array],
    weight: Floats,
    rng: np.random.Generator,
) -> None:
    """Demand of each of the parameters `start` the gradient that its differences have."""
    pulled = part.vjp(inputs, weight)
    np.testing.assert_array_equal(pulled.output, part(*inputs))
    assert pulled.parameters.keys() == start.keys()
    for name, values in start.items():
        step = rng.normal(size=values.shape)
        sides = []
        for sign in (1, -1):
            part.load({**start, name: values + sign * 1e-6 * step})
            sides.append((part(*inputs) * weight).sum())
        wanted = (sides[0] - sides[1]) / 2e-6
        assert (pulled.parameters[name] * step).sum() == pytest.approx(wanted, rel=1e-5, abs=1e-7)


def same_state(one: State, other: State) -> None:
    """Demand that two trainings are at one place, bit for bit."""
    assert (one.step, one.points) == (other.step, other.points)
    for kind in ("parameters", "first", "second"):
        arrays, others = getattr(one, kind), getattr(other, kind)
        assert arrays.keys() == others.keys()
        for name, values in arrays.items():
            assert values.tobytes() == others[name].tobytes(), name
