"""Correct code computed in another precision is not blamed for what that precision cannot show."""

import pytest

from attentest.faults.reference_models import REFERENCE_MODELS, reference_backend
from attentest.judging.bench import Bench
from attentest.judging.judge import judge


@pytest.mark.parametrize("placement", ["post", "pre"])
@pytest.mark.parametrize("model", REFERENCE_MODELS)
def test_dropped_columns_are_judged_where_they_can_be_distinguished(
    model: str, placement: str
) -> None:
    backend = reference_backend(REFERENCE_MODELS[model], {"norm_placement": placement})
    coarse, fine = (
        judge(Bench(backend, precision=precision), "residual.branch-is-dropped")
        for precision in ("bfloat16", "float32")
    )
    assert fine.status == "pass", fine.message
    assert coarse.status in ("pass", "absent"), coarse.message
