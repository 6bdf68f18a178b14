"""Seeds by whose examples a correct model had a violation."""

from dataclasses import replace

import pytest

from attentest.faults.reference_models import REFERENCE_MODELS, reference_backend
from attentest.judging.bench import Bench
from attentest.judging.judge import judge
from attentest.results.verdict import Status


@pytest.mark.parametrize(
    ("clause", "seed"),
    [
        ("language_model.every-layer-counts", 55214952),  # all units behind a ReLU are 0
        ("loss.formula", 1429073447),  # the loss is 0.006: logarithms cancel
    ],
)
def test_correct_model_conforms_by_an_unlucky_seed(clause: str, seed: int) -> None:
    backend = reference_backend(REFERENCE_MODELS["fused"])
    verdict = judge(replace(Bench.for_status(backend), seed=seed), clause)
    assert verdict.status is Status.PASS, verdict.message
