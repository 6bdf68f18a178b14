"""Gradients of models of double precision that compute norms and softmax in float32."""

import pytest
import torch

from attentest.faults.catalogue import fault_of
from attentest.faults.injection import with_faults
from attentest.faults.reference_models import REFERENCE_MODELS
from attentest.faults.reference_models.backend import reference_backend
from attentest.faults.reference_models.hooks import Hooks
from attentest.judging.bench import Bench
from attentest.judging.judge import judge
from attentest_spec.profiles import profile_of

torch.set_num_threads(1)

SINGLE = {
    **profile_of("gemma2").choices,
    "rms_arithmetic": "float32",
    "softmax_arithmetic": "float32",
}


def _status(model: type[Hooks], seed: int) -> str:
    backend = reference_backend(model, choices=SINGLE)
    bench = Bench.for_status(backend, seed=seed)
    return judge(bench, "language_model.gradient").status


@pytest.mark.parametrize(("name", "seed"), [("plain", 0), ("plain", 1), ("fused", 3)])
def test_norms_on_both_sides_amplify_the_rounding(name: str, seed: int) -> None:
    assert _status(REFERENCE_MODELS[name], seed) == "pass"


@pytest.mark.parametrize(
    "slug",
    [
        "rms_norm.divisor-constant-in-backward",
        "rms_norm.weight-detached",
        "language_model.embedding-detached",
    ],
)
def test_incomplete_gradient_is_found_above_the_rounding(slug: str) -> None:
    wrong = with_faults(REFERENCE_MODELS["plain"], fault_of(slug))
    assert {_status(wrong, seed) for seed in range(3)} == {"violation"}
