"""Small trainings for the tests of `attentest learn`."""

from typing import Any

import numpy as np

from attentest.faults.reference_models import Fused, Plain, reference_backend
from attentest.studies.learning import Regime
from attentest.studies.learning.checkpoint import State
from attentest.studies.learning.training import Trainer
from attentest_spec import Backend

SMALL: dict[str, Any] = {"length": 5, "d_model": 8, "heads": 2, "d_ff": 12, "validation": 20}
"""What is asked for where a test wants a training that takes no time."""

PLAIN = reference_backend(Plain, {"tying": "none"}, "plain")
FUSED = reference_backend(Fused, {"tying": "none"}, "fused")


def small(**asked: Any) -> Regime:
    return Regime.of(**{"steps": 6, "every": 2, "precision": "float64", **SMALL, **asked})


def trained(backend: Backend, regime: Regime, seed: int = 0, state: State | None = None) -> State:
    trainer = Trainer.of(backend, regime, seed, state)
    return trainer.train(lambda state: None, lambda step: None)


def losses(state: State) -> Any:
    return np.array([[one.training or 0.0, one.validation] for one in state.points])


def same_state(one: State, other: State) -> None:
    """Demand that two trainings are at one place, bit for bit."""
    assert (one.step, one.points) == (other.step, other.points)
    for kind in ("parameters", "first", "second"):
        arrays, others = getattr(one, kind), getattr(other, kind)
        assert arrays.keys() == others.keys()
        for name, values in arrays.items():
            assert values.tobytes() == others[name].tobytes(), name
