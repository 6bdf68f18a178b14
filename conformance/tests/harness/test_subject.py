"""Calls through a probe: what a backend returns, by names."""

import numpy as np
import pytest
from oracle_backend import probe

from attentest.faults.reference_models import REFERENCE_MODELS, reference_backend
from attentest.harness.errors import Absent, Violation
from attentest.harness.subject import Answer, Subject
from attentest.testing.refusal import require_index_errors
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


class _Placed:
    """A backend that records where its parts are built."""

    def __init__(self, inner):
        self.inner, self.places = inner, {}

    def __getattr__(self, name):
        return getattr(self.inner, name)

    def build(self, component, sizes, *, precision, device):
        self.places[component] = device
        return self.inner.build(component, sizes, precision=precision, device="cpu")


def test_batches_are_prepared_on_the_cpu_and_models_on_the_device():
    backend = _Placed(reference_backend(REFERENCE_MODELS["plain"]))
    subject = Subject(backend, device="cuda")
    for component in ("batch", "padded_batch", "packed_batch", "layer_norm", "loss"):
        subject.part(component, Sizes(d_model=4, heads=2))
    on_host = {name for name, place in backend.places.items() if place == "cpu"}
    assert on_host == {"batch", "padded_batch", "packed_batch"}
    assert backend.places["loss"] == "cuda"


def test_ids_out_of_range_are_judged_on_the_cpu_alone():
    require_index_errors(Subject(reference_backend(REFERENCE_MODELS["plain"])))
    with pytest.raises(Absent, match="on cuda an index out of range is not refused"):
        require_index_errors(Subject(reference_backend(REFERENCE_MODELS["plain"]), device="cuda"))
