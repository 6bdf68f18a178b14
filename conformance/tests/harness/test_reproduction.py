"""Reproductions through the contract: they run without the suite and do what was recorded."""

import ml_dtypes
import numpy as np
import pytest
from own import OWN
from standalone import contains_numbers, run_without_suite

from attentest.harness.errors import BackendError
from attentest.harness.reproduction import LONGEST, Call, Record, literal
from attentest.harness.subject import Subject
from attentest_spec import Sizes, registry
from attentest_spec.torch import Recipe, TorchBackend

SIZES = Sizes(d_model=4, heads=2)
NAME = min(OWN)


@pytest.fixture
def subject() -> Subject:
    return Subject(registry.load(NAME))


def normed(subject: Subject, *, precision: str = "float64", scale: float = 1.0):
    gain = np.array([1.0, -2.0, 0.5, 3.0]) * scale
    parameters = {"gain": gain, "bias": gain + 1.0}
    return subject.part("layer_norm", SIZES, parameters=parameters, precision=precision)


X = np.array([[[1.0, -2.0, 0.25, 4.0]]])


@pytest.mark.proof
def test_calls_are_repeated_in_the_precision_of_each_part(subject: Subject) -> None:
    answers = [normed(subject, precision=one)(X).output for one in subject.limits.precisions]
    ((ran, text),) = run_without_suite([subject.record.counterexample().code], spec=True)
    assert ran, text
    assert len(answers) > 1
    assert all(contains_numbers(text, one) for one in answers), text


def test_each_part_keeps_its_name(subject: Subject) -> None:
    first, second = normed(subject), normed(subject, scale=2.0)
    second(X)
    first(X)
    calls = subject.record.counterexample().code.splitlines()
    assert [one for one in calls if one.startswith("print(")] == ["print(part_2(", "print(part("]


def test_copies_modes_and_gradients_are_repeated(subject: Subject) -> None:
    probe = normed(subject)
    probe.train()
    copy = probe.become("making a pickled copy", lambda part: part.copied("pickle"))
    moved = copy.become("moving", lambda part: part.moved(precision="float32"), "float32")
    answer = moved(X).output
    gradient = copy.vjp((X,), X)
    probe.become("choosing", lambda part: part.reloaded().reloaded())
    probe.do("exporting", lambda part: part.export())
    probe.do("comparing", lambda part: sorted(part.export()))
    code = subject.record.counterexample().code
    assert "part.train()\n" in code
    assert "print(part.export())" in code
    assert "# then: comparing" in code
    assert "part_4 = part  # then: choosing" in code
    ((ran, text),) = run_without_suite([code], spec=True)
    assert ran, text
    assert contains_numbers(text, answer), text
    assert contains_numbers(text, gradient.inputs[0]), text


def test_a_build_that_raises_is_repeated() -> None:
    def refuse(sizes: Sizes) -> None:
        raise RuntimeError("no")

    backend = TorchBackend(name="mine", title="", recipes={"attention": Recipe(build=refuse)})
    subject = Subject(backend)
    with pytest.raises(BackendError):
        subject.part("attention", SIZES)
    code = subject.record.counterexample().code
    with pytest.raises(RuntimeError, match="no"):
        exec(code, {"backend": backend})


def test_an_unregistered_backend_is_not_loaded_by_its_name() -> None:
    backend = TorchBackend(name="mine", title="", recipes={})
    code = Subject(backend).record.counterexample().code
    assert "registry" not in code
    assert "# backend: the object called 'mine'" in code


def test_empty_and_infinite_arrays_are_written(subject: Subject) -> None:
    part = subject.part("causal_mask", SIZES)
    part.subject.record.add(_call(np.zeros((0, 3)), np.array([np.inf, -np.inf, np.nan])))
    code = subject.record.counterexample().code
    assert "np.zeros((0, 3), dtype='float64')" in code
    assert "np.array([np.inf, -np.inf, np.nan])" in code
    part.subject.record.add(_call(np.zeros(3, dtype=ml_dtypes.bfloat16)))
    assert "import ml_dtypes" in subject.record.counterexample().code


def test_arrays_lie_in_memory_as_they_did() -> None:
    plain = np.arange(6.0).reshape(2, 3)
    for one in (plain, np.asfortranarray(plain), plain[:, :2], plain.astype(np.float32)):
        again = eval(literal(one), {"np": np})
        assert np.array_equal(again, one)
        assert (again.strides, again.dtype) == (one.strides, one.dtype)


def _call(*inputs: np.ndarray):
    return Call(0, inputs)


def test_large_reproduction_is_a_comment(subject: Subject) -> None:
    subject.record.add(_call(np.zeros(LONGEST)))
    assert subject.record.counterexample().code.startswith("# too large")


def test_code_that_cannot_be_written_costs_no_verdict() -> None:
    def script(actions: object) -> str:
        raise ValueError("a value that cannot be shown")

    record = Record("mine", script)
    record.note("something")
    counterexample = record.counterexample()
    assert counterexample.steps == ("something",)
    assert counterexample.code == "# could not be written as code (ValueError); see the steps"


def test_sizes_without_an_effect_are_in_the_code_and_not_in_the_words(subject: Subject) -> None:
    """A network has no heads and no vocabulary; the sizes that it is built with are exact."""
    subject.part("feed_forward", Sizes(d_model=4, d_ff=6, heads=1, source_vocabulary=13))
    counterexample = subject.record.counterexample()
    assert counterexample.steps[0].startswith("build feed_forward with d_model=4, d_ff=6 in ")
    assert "source_vocabulary=13" in counterexample.code
    assert "heads=1" in counterexample.code
