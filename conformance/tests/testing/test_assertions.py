"""Assertions about arrays: a value just beyond the tolerance is refused, one just within is not."""

import ast
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from oracle_backend import OracleBackend

import attentest
from attentest.harness.errors import Violation
from attentest.harness.subject import Subject
from attentest.harness.tolerances import as_floats, distance, largest, rounding
from attentest.testing.assertions import (
    PLURALS,
    equal,
    finite,
    holds,
    near,
    same_shape,
    subject_noun,
)
from attentest_spec.precision import epsilon

EPS = 2.0**-52
NAN, INF = np.nan, np.inf
EMPTY = np.zeros((2, 0))


@pytest.fixture
def subject() -> Subject:
    return Subject(OracleBackend())


def array(*values: float) -> np.ndarray:
    return np.array(values)


# Shapes, truth, finiteness


@pytest.mark.parametrize("values", [[1, 2], np.array([1, 2]), np.ones(2, ml_dtypes.bfloat16)])
def test_floats_are_of_64_bits(values: Any) -> None:
    assert as_floats(values).dtype == np.float64
    assert as_floats(values)[0] == 1.0


def test_same_shape_demands_the_exact_shape() -> None:
    same_shape(np.ones((2, 3)), (2, 3))
    same_shape(EMPTY, (2, 0))
    for shape in [(3, 2), (2, 3, 1), (6,), (2, 1), ()]:
        with pytest.raises(Violation):
            same_shape(np.ones((2, 3)), shape)
    with pytest.raises(Violation, match=r"^The mask has the shape \(2, 3\), not \(3, 2\)\.$"):
        same_shape(np.ones((2, 3)), (3, 2), what="mask")
    with pytest.raises(Violation, match=r"^The output has"):
        same_shape(np.ones((2, 3)), ())


@pytest.mark.parametrize("truth", [True, np.bool_(True)])
def test_holds_accepts_truth(truth: Any) -> None:
    holds(truth, "nothing to tell")


@pytest.mark.parametrize("truth", [False, np.bool_(False)])
def test_holds_reports_message_and_arrays(truth: Any) -> None:
    with pytest.raises(Violation, match=r"^found$") as caught:
        holds(truth, "found", actual=1, expected=2)
    assert (caught.value.actual, caught.value.expected) == (1, 2)
    with pytest.raises(Violation) as caught:
        holds(truth, "found")
    assert (caught.value.actual, caught.value.expected) == (None, None)


@pytest.mark.parametrize("values", [EMPTY, array(0.0, -1e308), np.ones(2, ml_dtypes.bfloat16)])
def test_numbers_are_finite(values: np.ndarray) -> None:
    finite(values)


@pytest.mark.parametrize("bad", [NAN, INF, -INF])
def test_one_number_that_is_not_finite_is_enough(bad: float) -> None:
    values = array(1.0, bad, 3.0)
    with pytest.raises(Violation, match=r"^The output has 1 of 3 numbers that are not") as caught:
        finite(values)
    assert caught.value.actual is values
    with pytest.raises(Violation, match=r"^The gradient has 2 of 2 "):
        finite(array(bad, NAN), what="gradient")


# Exact equality


@pytest.mark.parametrize(
    ("actual", "expected"),
    [
        (array(1.0, -2.5), array(1.0, -2.5)),
        (array(NAN, INF), array(NAN, INF)),
        (array(0.0), array(-0.0)),
        (EMPTY, EMPTY),
        (np.float32([0.5]), array(0.5)),
        (np.array([True, False]), array(1.0, 0.0)),
    ],
)
def test_equal_numbers_are_equal(actual: np.ndarray, expected: np.ndarray) -> None:
    equal(actual, expected)


@pytest.mark.parametrize(
    ("actual", "expected"),
    [
        (array(1.0), array(1.0 + EPS)),
        (array(0.0), array(5e-324)),
        (array(NAN), array(1.0)),
        (array(1.0), array(NAN)),
        (array(INF), array(-INF)),
        (array(1.0), np.ones((1, 1))),
        (np.zeros((0, 2)), EMPTY),
        (np.float32([0.1]), array(0.1)),
    ],
)
def test_equal_is_bit_exact(actual: np.ndarray, expected: np.ndarray) -> None:
    with pytest.raises(Violation):
        equal(actual, expected)


def test_inequality_names_the_worst_place_and_keeps_the_arrays() -> None:
    actual, expected = np.array([[1.0, 2.0], [3.0, 9.0]]), np.array([[1.0, 2.5], [3.0, 4.0]])
    text = r"^The weights differ by 5 at \(1, 1\): found 9, expected 4"
    with pytest.raises(Violation, match=text) as caught:
        equal(actual, expected, what="weights")
    assert caught.value.actual is actual
    assert caught.value.expected is expected
    with pytest.raises(Violation, match=r"^The output differs"):
        equal(actual, expected)
    with pytest.raises(Violation, match=r"^The weights have the shape"):
        equal(actual, expected[0], what="weights")


# Nouns


def nouns() -> set[str]:
    """Return the nouns that messages of the suite are about."""
    found = {"output"}
    for folder in ("suite", "testing"):
        for file in (Path(attentest.__file__).parent / folder).rglob("*.py"):
            for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
                if isinstance(node, ast.keyword) and node.arg == "what":
                    found |= {subject_noun(text) for text in beginnings(node.value)}
    return found


def beginnings(value: ast.expr) -> list[str]:
    """Return the constant text that a `what` begins with, where it does."""
    first = value.values[0] if isinstance(value, ast.JoinedStr) else value
    return [first.value] if isinstance(first, ast.Constant) else []


def test_messages_agree_in_number_with_every_noun_of_the_suite(subject: Subject) -> None:
    found = nouns()
    assert {noun for noun in found if noun.endswith("s")} - {"loss"} == PLURALS
    assert {"output", "mask", "gradient", "sum", "parameter", "encoding"} <= found
    for noun in {*found, "gradients"}:
        several = noun in PLURALS
        differs, has = ("differ", "have") if several else ("differs", "has")
        contains = "contain" if several else "contains"
        what = f"{noun} of the second call"
        with pytest.raises(Violation, match=rf"^The {what} {differs} by 1 at "):
            equal(array(1.0), array(2.0), what=what)
        with pytest.raises(Violation, match=rf"^The {what} {has} the shape \(1,\), not \(2,\)"):
            same_shape(array(1.0), (2,), what=what)
        with pytest.raises(Violation, match=rf"^The {what} {has} 1 of 2 numbers that are not"):
            finite(array(NAN, 1.0), what=what)
        with pytest.raises(Violation, match=rf"^The {what} {contains} NaN"):
            near(subject, array(NAN), array(1.0), what=what)


def test_parameter_whose_name_ends_with_s_is_singular() -> None:
    with pytest.raises(Violation, match=r"^The norm\.bias, declared one with it, differs by 1 at"):
        equal(array(1.0), array(2.0), what="norm.bias, declared one with it,")


@pytest.mark.parametrize(
    ("actual", "expected", "told"),
    [
        (array(7.0, NAN, 1.0), array(2.0, 1.0, 1.0), r"inf at \(1,\): found nan, expected 1"),
        (array(7.0, 0.0), array(2.0, NAN), r"inf at \(1,\): found 0, expected nan"),
        (array(NAN, 3.0), array(NAN, 2.0), r"1 at \(1,\): found 3, expected 2"),
        (array(INF, 3.0), array(INF, 2.0), r"1 at \(1,\): found 3, expected 2"),
        (array(INF, 3.0), array(1.0, 2.0), r"inf at \(0,\): found inf, expected 1"),
    ],
)
def test_nan_is_the_largest_difference_unless_both_are_nan(
    actual: np.ndarray, expected: np.ndarray, told: str
) -> None:
    with pytest.raises(Violation, match=rf"differs by {told}"):
        equal(actual, expected)


# Distances and bounds


@pytest.mark.parametrize(
    ("actual", "expected", "apart"),
    [
        (array(1.0, 5.0), array(2.0, 2.0), 3.0),
        (array(2.0, 2.0), array(1.0, 5.0), 3.0),
        (EMPTY, EMPTY, 0.0),
        (array(INF, NAN, 1.0), array(INF, NAN, 1.5), 0.5),
        (array(NAN, 1.0), array(1.0, 1.0), INF),
        (array(1.0, 1.0), array(NAN, 1.0), INF),
        (array(INF), array(-INF), INF),
        (array(INF), array(1.0), INF),
        (np.array([True]), np.array([False]), 1.0),
    ],
)
def test_distance(actual: np.ndarray, expected: np.ndarray, apart: float) -> None:
    assert distance(actual, expected) == apart


@pytest.mark.parametrize(
    ("values", "size"),
    [
        (array(1.0, -3.0), 3.0),
        (array(NAN, INF, -INF, 0.25), 0.25),
        (array(NAN, INF), 0.0),
        (EMPTY, 0.0),
    ],
)
def test_largest(values: np.ndarray, size: float) -> None:
    assert largest(values) == size


@pytest.mark.parametrize("precision", ["float64", "float32", "bfloat16", "float16"])
def test_roundings_add_up_as_their_root(precision: str) -> None:
    assert rounding(precision, 1) == 4 * epsilon(precision)
    assert rounding(precision, 9) == 12 * epsilon(precision)


# Equality up to rounding: the bound is 4 eps times the root of the terms times the size


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize(("terms", "steps"), [(1, 4), (4, 8)])
def test_near_tolerance_is_sharp(subject: Subject, sign: int, terms: int, steps: int) -> None:
    one = array(1.0, -1.0)
    near(subject, one + sign * steps * EPS, one, terms=terms)
    assert subject.budget == 1.0
    with pytest.raises(Violation):
        near(subject, one + sign * (steps + 1) * EPS, one, terms=terms)


def test_near_defaults_to_one_term_and_the_expected_magnitude(subject: Subject) -> None:
    near(subject, array(1.0 + 8 * EPS, 2.0), array(1.0, 2.0))
    with pytest.raises(Violation):
        near(subject, array(1.0 + 9 * EPS, 2.0), array(1.0, 2.0))
    near(subject, array(1.0 + 12 * EPS), array(1.0), size=3.0)
    with pytest.raises(Violation):
        near(subject, array(1.0 + 13 * EPS), array(1.0), size=3.0)
    for size in (0.0, NAN):
        with pytest.raises(Violation):
            near(subject, array(9.0, 1e-15), array(9.0, 0.0), size=size)


def test_near_follows_the_precision_asked_for_or_the_subject() -> None:
    one, off = array(1.0), array(1.0 + 4 * 2.0**-23)
    near(Subject(OracleBackend(), precision="float32"), off, one)
    near(Subject(OracleBackend()), off, one, precision="float32")
    for subject, asked in (("float64", ""), ("float32", "float64")):
        with pytest.raises(Violation):
            near(Subject(OracleBackend(), precision=subject), off, one, precision=asked)


def test_near_without_size_demands_the_very_numbers(subject: Subject) -> None:
    near(subject, np.zeros(2), np.zeros(2))
    near(subject, EMPTY, EMPTY)
    near(subject, array(INF, 1.0), array(INF, 1.0))
    assert subject.budget == 0.0 or subject.budget is None
    with pytest.raises(Violation, match=r"; the tolerance is 0\.$"):
        near(subject, array(0.0, 5e-324), np.zeros(2))


@pytest.mark.parametrize("expected", [NAN, 1.0])
def test_near_refuses_nan_even_where_nan_is_expected(subject: Subject, expected: float) -> None:
    actual = array(NAN, 1.0)
    with pytest.raises(Violation, match=r"^The row contains NaN\.$") as caught:
        near(subject, actual, array(expected, 1.0), what="row")
    assert caught.value.actual is actual
    assert caught.value.expected[1] == 1.0


@pytest.mark.parametrize(("actual", "expected"), [(INF, 1.0), (1.0, INF), (INF, -INF), (1.0, NAN)])
def test_near_refuses_infinity_for_a_number(
    subject: Subject, actual: float, expected: float
) -> None:
    with pytest.raises(Violation):
        near(subject, array(actual, 1.0), array(expected, 1.0))


def test_near_judges_the_named_rows_alone(subject: Subject) -> None:
    actual, expected = np.array([[1.0, 2.0], [NAN, 4.0]]), np.array([[1.0, 2.0], [7.0, 4.0]])
    near(subject, actual, expected, rows=np.array([True, False]))
    with pytest.raises(Violation):
        near(subject, actual, expected, rows=np.array([True, True]))
    with pytest.raises(Violation):
        near(subject, actual, expected)
    with pytest.raises(Violation, match="shape"):
        near(subject, actual[:1], expected, rows=np.array([True, False]))


def test_violation_reports_place_numbers_and_tolerance(subject: Subject) -> None:
    actual, expected = np.array([[1.0, 2.0]]), np.array([[1.0, 1.0]])
    text = r"^The sum differs by 1 at \(0, 1\): found 2, expected 1; the tolerance is 8\.9e-16\.$"
    with pytest.raises(Violation, match=text) as caught:
        near(subject, actual, expected, what="sum")
    assert (caught.value.actual == actual).all()
    assert (caught.value.expected == expected).all()
    with pytest.raises(Violation, match=r"^The output differs"):
        near(subject, actual, expected)
    with pytest.raises(Violation, match=r"^The sum has the shape"):
        near(subject, actual, expected[0], what="sum")
    with pytest.raises(Violation, match=r"^The output contains NaN"):
        near(subject, actual * NAN, expected)


def test_used_share_of_the_tolerance_is_recorded(subject: Subject) -> None:
    near(subject, array(1.0 + 2 * EPS), array(1.0))
    assert subject.budget == 0.5
    near(subject, array(1.0 + EPS), array(1.0))
    assert subject.budget == 0.5
    near(subject, array(1.0 + 3 * EPS), array(1.0))
    assert subject.budget == 0.75
