"""Checkpoints and backends for the tests of conversions."""

from collections.abc import Mapping

import numpy as np

from attentest.faults.reference_models import Fused, Plain, reference_backend
from attentest.studies.convert import Checkpoint, Conversion
from attentest_spec import Backend, Choices, Sizes, Stateful
from attentest_spec.choices import Value
from attentest_spec.parameters import draw
from attentest_spec.precision import dtype
from attentest_spec.setting import Array
from attentest_spec.torch import TorchBackend

SIZES = Sizes(
    d_model=6, heads=2, d_ff=10, layers=2, source_vocabulary=11, target_vocabulary=13, max_length=9
)
UNTIED: Mapping[str, Value] = {"tying": "none"}
HEADS = {"heads": 2}


def plain(**choices: Value) -> TorchBackend:
    return reference_backend(Plain, {**UNTIED, **choices}, "plain")


def fused(**choices: Value) -> TorchBackend:
    return reference_backend(Fused, {**UNTIED, **choices}, "fused")


def checkpoint(backend: Backend, sizes: Sizes = SIZES, precision: str = "float64") -> Checkpoint:
    """Return the state of a model with drawn parameters, gains and biases too."""
    part = backend.build("model", sizes, precision=precision)
    assert isinstance(part, Stateful)
    choices = Choices.of(backend.choices)
    drawn = draw("model", sizes, choices, np.random.default_rng(5), decimals=12)
    part.load({name: values.astype(dtype(precision)) for name, values in drawn.items()})
    return Checkpoint(part.state())


def same(one: Checkpoint, other: Checkpoint) -> bool:
    """Say whether two checkpoints hold the same entries, bit for bit."""
    return one.entries.keys() == other.entries.keys() and all(
        array.tobytes() == other.entries[name].tobytes()
        and array.dtype == other.entries[name].dtype
        for name, array in one.entries.items()
    )


def changed(given: Checkpoint, **entries: Array) -> Checkpoint:
    return Checkpoint({**given.entries, **entries})


def without(given: Checkpoint, name: str) -> Checkpoint:
    return Checkpoint({one: array for one, array in given.entries.items() if one != name})


def furthest(found: Conversion) -> float:
    assert len(found.effect.apart) == 2  # the memory and the output
    return max(one.difference for one in found.effect.apart)
