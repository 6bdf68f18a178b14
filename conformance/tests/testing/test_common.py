"""Assertions that chapters share: accepted, refused and absent cases."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from oracle_backend import Bend, OracleBackend, OraclePart, claimed, probe

from attentest.harness.errors import Absent, Violation
from attentest.harness.subject import Subject
from attentest.harness.tolerances import error_bound
from attentest.judging.bench import Bench
from attentest.judging.judge import judge
from attentest.testing.common import (
    dropout_keeps_mean,
    dropout_off_in_evaluation,
    half_precisions,
    matches_declared_biases,
    matches_declared_option,
    matches_in_precision,
    same_precision,
)
from attentest.testing.draw import Draw
from attentest_spec import Limits, Sizes

SIZES = Sizes(d_model=6, heads=2, d_ff=7)
X = np.round(np.random.default_rng(3).normal(size=(2, 5, 6)), 1)


def seeded(subject: Subject) -> Draw:
    return Draw(None, subject, np.random.default_rng(11))  # type: ignore[arg-type]


# Precisions


def test_output_is_in_the_precision_of_the_part() -> None:
    same_precision(probe("layer_norm", precision="float32"), X.astype(np.float32))
    with pytest.raises(Violation, match=r"^The output is float64; the inputs are float32\.$"):
        same_precision(probe("layer_norm", precision="float32"), X)


@pytest.mark.parametrize(
    ("supported", "found"),
    [
        (("float64", "bfloat16", "float16"), ["bfloat16", "float16"]),
        (("float16", "float32"), ["float16"]),
    ],
)
@claimed()
def test_half_precisions_are_those_supported(supported: Any, found: Any) -> None:
    subject = Subject(OracleBackend(limits=Limits(precisions=supported)))
    assert half_precisions(subject) == found


def test_without_half_precisions_it_is_absent() -> None:
    subject = Subject(OracleBackend(limits=Limits(precisions=("float32",))))
    with pytest.raises(Absent, match=r"^oracle computes in no half precision$"):
        half_precisions(subject)


def bent_norm(bend: Bend) -> Any:
    """Return what makes a norm of the bent oracle in a precision, and its input."""
    return lambda precision: (probe("layer_norm", SIZES, bend, precision=precision), (X,))


@pytest.mark.parametrize("precision", ["float64", "float32", "bfloat16", "float16"])
@claimed()
def test_precise_output_is_returned_with_its_part(precision: str) -> None:
    part, output = matches_in_precision(bent_norm(lambda answer, part: answer), precision)
    assert part.precision == str(output.dtype) == precision
    assert (output == part.output(X)).all()


ROWS = np.ones((2, 5), bool)
ROWS[1, 2] = False


@pytest.mark.parametrize("wrong", [1.1, np.nan, np.inf])
@claimed()
def test_imprecise_output_is_refused_at_the_rows_that_count(wrong: float) -> None:
    def bend(answer: Any, part: Any) -> Any:
        answer[1, 2] *= wrong
        return answer

    with pytest.raises(Violation, match=r"^The output in float32 differs"):
        matches_in_precision(bent_norm(bend), "float32")
    matches_in_precision(bent_norm(bend), "float32", rows=ROWS)
    with pytest.raises(Violation):
        matches_in_precision(bent_norm(bend), "float32", rows=~ROWS)


def test_output_that_overflows_as_the_oracle_does_is_not_finite() -> None:
    def make(precision: str) -> Any:
        part = probe("positional_encoding", SIZES, precision=precision)
        x = X.copy()
        x[1, 2] = np.inf
        return part, (x,)

    with pytest.raises(Violation, match=r"has 6 of 60 numbers that are not finite"):
        matches_in_precision(make, "float32")
    matches_in_precision(make, "float32", rows=ROWS)


def test_output_in_another_precision_is_refused() -> None:
    def make(precision: str) -> Any:
        return probe("layer_norm", SIZES, precision="float32"), (X,)

    part, inputs = make("")
    part.precision = "float64"
    with pytest.raises(Violation, match="float32; the inputs are float64"):
        matches_in_precision(lambda _: (part, inputs), "float64")


@claimed()
def test_method_is_compared_with_the_method_of_the_reference() -> None:
    source = np.array([[1, 2, 4]])
    _, output = matches_in_precision(
        lambda _: (probe("model", SIZES), (source,)), "float64", method="encode"
    )
    assert output.shape == (1, 3, 6)


# Choices


def norm(declared: float, real: float) -> tuple[Any, np.ndarray]:
    """Return a norm that declares one epsilon, and the output that another one gives."""
    part, other = (probe("layer_norm", SIZES, norm_epsilon=value) for value in (declared, real))
    return part, other.expected(X).output


OTHERS = (1e-12, 1e-3, 0.5)


@pytest.mark.parametrize("declared", [1e-3, 0.5, 0.25])
@claimed()
def test_declared_option_matches(declared: float) -> None:
    part, output = norm(declared, declared)
    matches_declared_option(part, X, actual=output, choice="norm_epsilon", others=OTHERS)


def test_another_option_is_named() -> None:
    part, output = norm(1e-3, 0.5)
    text = r"^norm_epsilon is declared as 0\.001; the numbers show 0\.5\.$"
    with pytest.raises(Violation, match=text) as caught:
        matches_declared_option(part, X, actual=output, choice="norm_epsilon", others=OTHERS)
    assert caught.value.actual is output


def test_output_of_no_option_differs_from_the_declared_one() -> None:
    part, output = norm(1e-3, 0.2)
    with pytest.raises(Violation, match=r"^The output differs by"):
        matches_declared_option(part, X, actual=output, choice="norm_epsilon", others=OTHERS)


def test_options_with_the_same_numbers_are_not_distinguished() -> None:
    part = probe("layer_norm", SIZES, norm_epsilon=1e-30)
    text = r"^norm_epsilon: the numbers do not distinguish 1e-30 from 1e-25$"
    with pytest.raises(Absent, match=text):
        matches_declared_option(
            part, X, actual=part.expected(X).output, choice="norm_epsilon", others=(0.5, 1e-25)
        )


# Evaluation mode


def quiet(bend: Bend, **limits: Any) -> None:
    subject = Subject(OracleBackend(bend, limits=Limits(**limits)))
    dropout_off_in_evaluation(subject, seeded(subject), "layer_norm", SIZES, X)


def dropping(answer: Any, part: Any) -> Any:
    """Drop at random in training, at the part's own rate."""
    kept = np.random.default_rng(part.calls).random(answer.shape) >= part.sizes.dropout
    return answer * kept if part.training else answer


@pytest.mark.parametrize("dropout", [True, False])
@claimed()
def test_dropout_in_training_alone_is_off_in_evaluation(dropout: bool) -> None:
    rates = []

    def bend(answer: Any, part: Any) -> Any:
        rates.append((part.sizes.dropout, part.training))
        return dropping(answer, part)

    quiet(bend, dropout=dropout)
    rate = 0.5 if dropout else 0.0
    assert rates == [(rate, False)] * 2 + [(rate, True), (rate, False), (0.0, False)]


def _always(answer: Any, part: Any) -> Any:
    return answer * 0.5 if part.sizes.dropout else answer


def _twice(answer: Any, part: Any) -> Any:
    return answer * (1 + 2.0**-50) if part.calls == 2 else answer


def _after(answer: Any, part: Any) -> Any:
    return answer * (1 + 2.0**-50) if part.calls == 4 else answer


def _rate(answer: Any, part: Any) -> Any:
    return answer if part.sizes.dropout else answer * (1 + 2.0**-50)


@pytest.mark.parametrize(
    ("bend", "message"),
    [
        (_always, "output differs"),
        (_twice, "output of the second call differs"),
        (_after, "output after training mode and back differs"),
        (_rate, "output without a dropout rate differs"),
    ],
)
@claimed()
def test_dropout_in_evaluation_is_refused(bend: Bend, message: str) -> None:
    with pytest.raises(Violation, match=f"^The {message}"):
        quiet(bend)


def test_output_written_to_later_is_reported() -> None:
    held = np.zeros_like(X)

    class Reusing(OraclePart):
        """Returns one and the same array, and adds to it after the first call."""

        def cast(self, array: Any) -> Any:
            held[:] = array + 2.0**-40 * (self.calls > 1)
            return held

    subject = Subject(OracleBackend(part=Reusing))
    with pytest.raises(Violation, match=r"^The output of the second call differs"):
        dropout_off_in_evaluation(subject, seeded(subject), "layer_norm", SIZES, X)


# Training mode


@pytest.mark.parametrize(
    ("factor", "sound"), [(2.0, True), (1.0, False), (1.5, False), (0.0, False)]
)
def test_dropout_keeps_the_mean(factor: float, sound: bool) -> None:
    def bend(answer: Any, part: Any) -> Any:
        kept = np.random.default_rng(5).random(answer.shape) < 0.5
        return answer * kept * factor if part.training else answer

    one = probe("layer_norm", SIZES.but(dropout=0.5), bend)
    if sound:
        dropout_keeps_mean(one, X[:1])
    else:
        text = r"^At a dropout rate of 0\.5, the mean of 500 equal samples in training differs by "
        with pytest.raises(Violation, match=text):
            dropout_keeps_mean(one, X[:1])
    assert not one.part.training


@pytest.mark.parametrize(("factor", "sound"), [(2.0, True), (1.0, False), (0.0, False)])
def test_dropout_shared_by_all_samples_keeps_the_mean_of_many_calls(
    factor: float, sound: bool
) -> None:
    rng = np.random.default_rng(5)

    def bend(answer: Any, part: Any) -> Any:
        kept = rng.random(answer.shape[1:]) < 0.5
        return answer * kept * factor if part.training else answer

    one = probe("layer_norm", SIZES.but(dropout=0.5), bend)
    if sound:
        dropout_keeps_mean(one, X[:1])
    else:
        with pytest.raises(Violation, match=r"^At a dropout rate of 0\.5, the mean of 500 equal"):
            dropout_keeps_mean(one, X[:1])
    assert not one.part.training


def training(change: Callable[[Any], Any]) -> Any:
    """Return a norm whose answers in training are those of evaluation, changed."""
    return probe(
        "layer_norm", SIZES, lambda answer, part: change(answer) if part.training else answer
    )


def room(one: Any, x: Any) -> float:
    """Return what rounding alone allows the mean of 500 samples to be off."""
    output = one.expected(x).output
    return 2 * error_bound(one, (x,), output) + 4 * 2.0**-52 * 500**0.5 * np.abs(output).max()


@pytest.mark.parametrize(
    ("x", "share"), [(X[:1], 0.5), (1.0 + 1e-2 * X[:1], 0.9)], ids=["gentle", "steep"]
)
def test_without_chance_the_mean_is_as_exact_as_its_rounding(x: Any, share: float) -> None:
    allowed = room(training(lambda answer: answer), x)
    dropout_keeps_mean(training(lambda answer: answer + share * allowed), x)
    with pytest.raises(Violation):
        dropout_keeps_mean(training(lambda answer: answer + 1.1 * allowed), x)


@pytest.mark.parametrize("share", [0.99, 1.01])
def test_chance_allows_the_mean_six_standard_errors(share: float) -> None:
    def change(answer: Any) -> Any:
        swing = np.where(np.arange(len(answer)) % 2, 0.01, -0.01)
        answer[:, 0, 0] += swing + share * 6 * 0.01 / 500**0.5
        return answer

    if share < 1:
        dropout_keeps_mean(training(change), X[:1])
        return
    with pytest.raises(Violation):
        dropout_keeps_mean(training(change), X[:1])


def test_mean_of_a_part_that_takes_more_than_arrays() -> None:
    dropout_keeps_mean(probe("encoder_layer", SIZES), X[:1], None)


# Biases


@pytest.mark.parametrize(("bias", "raised"), [(1.0, Violation), (0.0, Absent)])
def test_declared_bias_without_effect_is_reported_where_it_is_not_zero(
    bias: float, raised: type[Exception]
) -> None:
    norm = probe("layer_norm", SIZES, lambda output, part: 0.0 * output)
    norm.load({"gain": np.ones(6), "bias": np.full(6, bias)})
    with pytest.raises(raised, match="norm_bias"):
        matches_declared_biases(norm, np.zeros((1, 2, 6)), choice="norm_bias")


def test_mean_that_float32_cannot_take_out_makes_no_violation() -> None:
    place = {"norm_epsilon_place": "added-to-deviation", "norm_epsilon": 1e-6}
    backend = OracleBackend(choices=place)
    verdict = judge(Bench(backend, precision="float32", diagnose=False), "layer_norm.norm-bias")
    assert verdict.status == "pass"
