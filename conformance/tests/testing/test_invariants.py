"""Laws between two answers of one part: tolerances with and without a parameter map."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle_backend import OracleBackend, OraclePart, claimed, probe

from attentest.harness.errors import BackendError, Violation
from attentest.harness.subject import Probe, Subject
from attentest.harness.tolerances import error_bound, largest
from attentest.testing.draw import Draw
from attentest.testing.invariants import (
    agree_up_to_rounding,
    build_with_parameters,
    draw_order,
    has_parameter_map,
)
from attentest_spec import Sizes
from attentest_spec.contract import Unsupported
from attentest_spec.precision import epsilon

EPS = 2.0**-52
SIZES = Sizes(d_model=6, heads=2, d_ff=7)
X = np.random.default_rng(3).normal(size=(2, 5, 6))
EXAMPLES = settings(max_examples=30, database=None, deadline=None, derandomize=True)


class Mapless(OraclePart):
    """A bare callable: it says that it has no parameter map."""

    def export(self) -> Any:
        raise Unsupported("no parameter map")

    def load(self, parameters: Any) -> None:
        raise Unsupported("no parameter map")


class Broken(OraclePart):
    """A part whose export is broken."""

    def export(self) -> Any:
        raise RuntimeError("out of luck")


def drawing(data: st.DataObject, **about: Any) -> Draw:
    return Draw.of(data.draw, Subject(OracleBackend(**about)))


# Parts with a parameter map, and without


def test_parameter_map_needs_a_parameter() -> None:
    assert has_parameter_map(probe("layer_norm"))
    assert not has_parameter_map(probe("attention"))
    assert not has_parameter_map(Subject(OracleBackend(part=Mapless)).part("layer_norm", SIZES))
    with pytest.raises(BackendError, match="exporting the parameters raised RuntimeError"):
        has_parameter_map(Subject(OracleBackend(part=Broken)).part("layer_norm", SIZES))


@EXAMPLES
@given(st.data())
@claimed()
def test_part_is_built_with_drawn_parameters(data: st.DataObject) -> None:
    draw = drawing(data)
    part = build_with_parameters(draw.subject, draw, "layer_norm", SIZES, precision="float32")
    assert part.component == "layer_norm"
    assert part.sizes is SIZES
    assert part.precision == "float32"
    assert set(part.parameters) == {"gain", "bias"}
    assert all(
        (part.part.export()[name] == part.parameters[name]).all() for name in ("gain", "bias")
    )
    assert all((one == one.astype(np.float32)).all() for one in part.parameters.values())
    wide = build_with_parameters(draw.subject, draw, "feed_forward", SIZES)
    assert wide.precision == "float64"
    assert (wide.parameters["inner.weight"] != wide.parameters["inner.weight"].astype("f4")).any()


@EXAMPLES
@given(st.data())
def test_part_without_a_map_keeps_its_initial_parameters(data: st.DataObject) -> None:
    draw = drawing(data, part=Mapless)
    part = build_with_parameters(draw.subject, draw, "layer_norm", SIZES)
    assert part.parameters == {}


# Two answers


def steep() -> tuple[Probe, np.ndarray, np.ndarray, float]:
    """Return a norm, rows that amplify, its answer, and twice the bound of one answer."""
    part, x = probe("layer_norm", SIZES, norm_epsilon=0.0), 1.0 + 1e-4 * X
    answer = part.expected(x).output
    return part, x, answer, 2 * error_bound(part, (x,), answer)


def test_each_answer_may_be_as_wrong_as_the_arithmetic_allows() -> None:
    part, x, answer, bound = steep()
    assert bound > 100 * 4 * EPS * largest(answer)
    place = np.zeros_like(answer)
    place[1, 4, 2] = 1.0
    agree_up_to_rounding(part, x, actual=answer + 0.98 * bound * place, expected=answer, what="row")
    assert part.subject.budget == pytest.approx(0.98, rel=1e-3)
    with pytest.raises(Violation, match=r"^The row differs by .* at \(1, 4, 2\)"):
        agree_up_to_rounding(
            part, x, actual=answer + 1.02 * bound * place, expected=answer, what="row"
        )


def test_answers_within_a_few_roundings_are_not_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    part, twos = probe("layer_norm", SIZES), np.full_like(X, 2.0)
    asked: list[Any] = []
    oracle = part.expected
    monkeypatch.setattr(part, "expected", lambda *a, **k: asked.append(a) or oracle(*a, **k))
    agree_up_to_rounding(part, X, actual=twos + 2 * EPS, expected=twos, what="row")
    assert part.subject.budget == 0.25
    first = np.zeros((2, 5), bool)
    first[0] = True
    actual = np.where(first[..., None], twos, 9.0)
    agree_up_to_rounding(part, X, actual=actual, expected=twos, what="row", rows=first)
    assert not asked
    agree_up_to_rounding(part, X, actual=twos + 4 * EPS, expected=twos, what="row")
    assert len(asked) == 1  # the size of the answer allows as much: no amplification is measured
    agree_up_to_rounding(part, X, actual=twos + 40 * EPS, expected=twos, what="row")
    assert len(asked) > 4


@pytest.mark.parametrize("precision", ["float64", "float32"])
def test_tolerance_without_parameters_follows_the_inputs(precision: str) -> None:
    subject = Subject(OracleBackend(part=Mapless), precision="float64")
    part = subject.part("attention", SIZES, precision=precision)
    ones = np.ones((1, 1, 2, 6))
    mask = np.ones((1, 1, 1, 2), bool)
    bound = 4 * epsilon(precision) * 6**0.5 * (1.0 + 3.0) ** 3
    inputs = (ones, -3.0 * ones, 2.0 * ones, mask)
    agree_up_to_rounding(part, *inputs, actual=ones + 0.98 * bound, expected=ones, what="output")
    with pytest.raises(Violation):
        agree_up_to_rounding(
            part, *inputs, actual=ones + 1.02 * bound, expected=ones, what="output"
        )


def test_without_arrays_the_reach_is_one() -> None:
    part = Subject(OracleBackend(part=Mapless)).part("attention", SIZES)
    one, bound = np.ones(1), 4 * EPS * 6**0.5 * 2.0**3
    for inputs in ((4, None), (np.ones(3, bool),)):
        agree_up_to_rounding(part, *inputs, actual=one + 0.98 * bound, expected=one, what="output")
        with pytest.raises(Violation):
            agree_up_to_rounding(
                part, *inputs, actual=one + 1.02 * bound, expected=one, what="output"
            )


def test_answer_beside_weights_is_measured_by_itself() -> None:
    part = probe("attention", SIZES)
    part.parameters = {"given": np.ones(1)}
    inputs = (*np.random.default_rng(5).normal(size=(3, 1, 1, 2, 6)), None)
    answer = part.expected(*inputs).output
    bound = 2 * error_bound(part, inputs, answer)
    agree_up_to_rounding(
        part, *inputs, actual=answer + 0.98 * bound, expected=answer, what="output"
    )
    with pytest.raises(Violation):
        agree_up_to_rounding(
            part, *inputs, actual=answer + 1.02 * bound, expected=answer, what="output"
        )


def test_selected_rows_alone_are_compared() -> None:
    part, x, answer, bound = steep()
    wrong = answer.copy()
    wrong[0, 2] = np.nan
    rows = np.ones((2, 5), bool)
    with pytest.raises(Violation):
        agree_up_to_rounding(part, x, actual=wrong, expected=answer, what="row", rows=rows)
    with pytest.raises(Violation):
        agree_up_to_rounding(part, x, actual=wrong, expected=answer, what="row")
    rows[0, 2] = False
    agree_up_to_rounding(part, x, actual=wrong, expected=answer, what="row", rows=rows)
    agree_up_to_rounding(
        part, x, actual=wrong + 0.9 * bound, expected=answer, what="row", rows=rows
    )


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_nan_agrees_with_nothing(bad: float) -> None:
    part, x, answer, _ = steep()
    wrong = answer.copy()
    wrong[0, 0, 0] = bad
    pairs = [(wrong, answer), (answer, wrong)] + [(wrong, wrong)] * bool(np.isnan(bad))
    for actual, expected in pairs:
        with pytest.raises(Violation):
            agree_up_to_rounding(part, x, actual=actual, expected=expected, what="row")


def test_another_shape_is_refused() -> None:
    part, x, answer, _ = steep()
    for actual in (answer[0], answer[:, :1], answer[..., :1]):
        with pytest.raises(Violation, match=r"^The row has the shape"):
            agree_up_to_rounding(part, x, actual=actual, expected=answer, what="row")


# Orders


@EXAMPLES
@given(st.data(), st.integers(2, 6))
def test_order_is_a_permutation_and_not_the_first(data: st.DataObject, length: int) -> None:
    order = draw_order(drawing(data), length)
    assert sorted(order) == list(range(length))
    assert list(order) != list(range(length))


@EXAMPLES
@given(st.data(), st.integers(3, 6))
def test_order_of_three_or_more_is_no_rotation(data: st.DataObject, length: int) -> None:
    order = list(draw_order(drawing(data), length))
    assert order not in [[*range(start, length), *range(start)] for start in range(length)]


@pytest.mark.parametrize("first", [[0, 1, 2], [1, 2, 0], [2, 0, 1]])
def test_a_rotation_gets_its_first_two_items_exchanged(first: list[int]) -> None:
    numbers = SimpleNamespace(permutation=lambda length: np.array(first))
    found = draw_order(SimpleNamespace(rng=numbers), 3)  # type: ignore[arg-type]
    assert found.tolist() == [first[1], first[0], first[2]]


def test_other_orders_stay_as_they_are_drawn() -> None:
    numbers = SimpleNamespace(permutation=lambda length: np.array([0, 2, 1, 3]))
    assert draw_order(SimpleNamespace(rng=numbers), 4).tolist() == [0, 2, 1, 3]  # type: ignore[arg-type]


@EXAMPLES
@given(st.data())
def test_one_item_has_one_order(data: st.DataObject) -> None:
    assert list(draw_order(drawing(data), 1)) == [0]
