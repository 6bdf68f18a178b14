"""The evidence in failing examples: what an explanation has to reproduce, and how closely."""

import numpy as np
import pytest
from styles_of_attention import attend

from attentest.analysis.diagnosis.difference import difference
from attentest.analysis.diagnosis.evidence import examine
from attentest.analysis.diagnosis.variants import correct_backends
from attentest.harness.copies import cast
from attentest.harness.replay import replay
from attentest.judging.bench import Bench
from attentest_spec import Sizes
from attentest_spec.torch import of_function


@pytest.mark.parametrize("scale", [1.0, 2.0, 4.0])
def test_explanation_in_half_precision_leaves_a_small_part_of_the_difference(scale):
    """Large scores amplify roundings so much that the tolerance alone excludes nothing."""
    backend = of_function(lambda q, k, v, mask: (attend(q, q, v, mask), None), "attention")
    subject = Bench(backend, precision="bfloat16").subject("attention")
    rng = np.random.default_rng(0)
    query, key, value = (cast(rng.normal(size=(2, 2, 4, 4)) * scale, "bfloat16") for _ in range(3))
    subject.part("attention", Sizes(d_model=8, heads=2)).output(query, key, value, None)
    correct = correct_backends(subject.choices)
    mark = examine(subject.trace, backend, correct, "bfloat16").marks[-1]
    right = [list(replay(subject.trace, one))[-1] for one in correct]
    assert mark.wrong
    assert mark.tolerance < min(difference(mark.outcome, one) for one in right) / 3
