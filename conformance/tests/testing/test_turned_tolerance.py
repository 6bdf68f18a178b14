"""The tolerance of attention that turns its queries and keys by tables in float32."""

import numpy as np
import pytest
from oracle_backend import OracleBackend

from attentest.harness.subject import Probe, Subject
from attentest.harness.tolerances import error_bound
from attentest_spec import Sizes, rotary
from attentest_spec.rotary import Turns
from attentest_spec.setting import Array, Floats

LENGTH, WIDTH, HEADS = 5, 32, 4
CHOICES = {
    "attention_rotary": "query-and-key",
    "attention_causality": "built-in",
    "rotary_base": 1e6,
    "rotary_arithmetic": "float32",
}


def probe(scale: float) -> Probe:
    """Return attention with projections that are `scale` times as large as they begin."""
    made = Subject(OracleBackend(choices=CHOICES)).part(
        "multi_head_attention", Sizes(d_model=WIDTH, heads=HEADS)
    )
    made.parameters = {name: scale * one for name, one in made.part.export().items()}
    return made


def errors(
    monkeypatch: pytest.MonkeyPatch, seed: int, factor: float, scale: float
) -> tuple[float, float]:
    """Return the error of cosines that are wrong by `factor`, and its tolerance."""
    part = probe(scale)
    x = np.random.default_rng(seed).normal(size=(2, LENGTH, WIDTH)) * 3
    inputs = (x, x, x, None)
    expected = np.asarray(part.expected(*inputs).output)
    exact = rotary.turns
    signs = np.random.default_rng(seed).choice([-1.0, 1.0], size=WIDTH // HEADS // 2)

    def off(given: object, places: Array, width: int, length: int = 0) -> Turns:
        found = exact(given, places, width, length)  # type: ignore[arg-type]
        return Turns(found.cosines * (1 + factor * signs), found.sines)

    with monkeypatch.context() as changed:
        changed.setattr(rotary, "turns", off)
        actual: Floats = np.asarray(part.expected(*inputs).output)
    return float(np.abs(actual - expected).max()), error_bound(part, inputs, expected)


@pytest.mark.parametrize("seed", [26, 49, 54])
def test_cosines_that_are_rounded_otherwise_are_inside(
    monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """Libraries give cosines that are one unit in the last place of float32 off."""
    error, tolerance = errors(monkeypatch, seed, np.finfo(np.float32).eps / 2, 4.0)
    assert 0 < error <= tolerance


def test_cosines_of_half_precision_are_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    error, tolerance = errors(monkeypatch, 0, float(np.finfo(np.float16).eps), 1.0)
    assert error > tolerance
