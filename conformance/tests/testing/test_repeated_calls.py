"""Answers of repeated calls: exactly equal on the CPU, up to rounding where sums have no order."""

from typing import Any

import numpy as np
import pytest

from attentest.faults.reference_models import REFERENCE_MODELS, reference_backend
from attentest.judging.bench import Bench
from attentest.judging.judge import judge
from attentest.results.verdict import Status


class _Elsewhere:
    """A backend or a part of one that computes on the CPU wherever it is asked to."""

    def __init__(self, inner: Any, change: float) -> None:
        self.inner, self.change, self.calls = inner, change, 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def build(self, component: str, sizes: Any, *, precision: str, device: str) -> Any:
        part = self.inner.build(component, sizes, precision=precision, device="cpu")
        return _Elsewhere(part, self.change)

    def __call__(self, *inputs: Any, method: str = "") -> Any:
        """Return a loss that is larger by the factor 1 + `change` at every fourth call."""
        self.calls += 1
        loss = self.inner(*inputs, method=method)
        return np.asarray(loss * (1 + self.change * (self.calls % 4 == 0)), loss.dtype)


@pytest.mark.parametrize(
    ("device", "change", "status"),
    [
        ("cuda", 1.2e-7, Status.PASS),  # the last digit of a sum that is added in another order
        ("cuda", 1e-3, Status.VIOLATION),
        ("cpu", 1.2e-7, Status.VIOLATION),
    ],
)
def test_sums_on_an_accelerator_are_equal_up_to_rounding(
    device: str, change: float, status: Status
) -> None:
    backend = _Elsewhere(reference_backend(REFERENCE_MODELS["plain"]), change)
    bench = Bench.for_status(backend, precision="float32", device=device)
    assert judge(bench, "loss.calls-independent").status is status
