"""Calls through a probe: what a backend returns, by names."""

import numpy as np
import pytest
from oracle_backend import probe

from attentest.harness.errors import Absent, Violation
from attentest.harness.subject import Answer
from attentest_spec import Sizes

SIZES = Sizes(d_model=4, heads=2)
HEADS = np.random.default_rng(3).normal(size=(3, 2, 2, 5, 2))
X = HEADS[0, :, 0, :, :].repeat(2, axis=-1)


def test_answer_names_output_and_weights():
    output, weights = np.zeros(2), np.ones(3)
    for result in (output, (output,), (output, None)):
        assert Answer.of(result) == (output, None)
    assert Answer.of((output, weights)) == (output, weights)
    assert Answer.of((output, weights, np.zeros(1))) == (output, weights)


def test_call_returns_output_and_weights():
    part = probe("attention", SIZES)
    answer, expected = part(*HEADS, None), part.expected(*HEADS, None)
    np.testing.assert_array_equal(answer.output, expected.output)
    np.testing.assert_array_equal(answer.weights, expected.weights)
    np.testing.assert_array_equal(part.weights(*HEADS, None), expected.weights)


@pytest.mark.parametrize("result", ["output alone", "one in a tuple", "None in place of weights"])
def test_weights_are_absent_where_none_are_returned(result):
    bends = {
        "output alone": lambda answer, part: answer[0],
        "one in a tuple": lambda answer, part: answer[:1],
        "None in place of weights": lambda answer, part: (answer[0], NOTHING),
    }
    part = probe("attention", SIZES, bends[result])
    assert part(*HEADS, None).weights is None
    with pytest.raises(Absent, match="the attention of oracle returns no weights"):
        part.weights(*HEADS, None)


class _Nothing:
    """A replacement of None: the oracle backend casts its outputs."""

    dtype = np.dtype(float)

    def astype(self, wanted):
        return None


NOTHING = _Nothing()


@pytest.mark.parametrize(
    ("result", "message"),
    [
        ((), "calling layer_norm returned nothing"),
        ((NOTHING,), "calling layer_norm returned nothing"),
        (NOTHING, "calling layer_norm returned nothing"),
    ],
)
def test_answer_without_an_output_is_a_violation(result, message):
    part = probe("layer_norm", SIZES, lambda answer, part: result)
    with pytest.raises(Violation, match=message):
        part(X)
