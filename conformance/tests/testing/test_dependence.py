"""Dependence of positions on each other and on the memory."""

from typing import Any

import numpy as np
import pytest
from layer_cases import (
    CAUSAL,
    MEMORY,
    PADDING,
    X,
    case,
    gathered,
    seeded,
    straight,
)
from oracle_backend import Bend, OraclePart, claimed

from attentest.harness.errors import Violation
from attentest.testing import dependence, layer_calls
from attentest_spec import Gradient

# What a position can see


def test_other_numbers_stand_where_they_are_asked_for() -> None:
    where = np.zeros((2, 4), bool)
    where[0, 2] = True
    one = case()
    found = dependence.replace_positions(seeded(one), X, where, scale=30.0)
    assert (found[~where] == X[~where]).all()
    assert (found[where] == seeded(one).floats(2, 4, 6, scale=30.0)[where]).all()
    plain = dependence.replace_positions(seeded(one), X, np.bool_(True) & where)
    assert (plain[where] == seeded(one).floats(2, 4, 6)[where]).all()


@pytest.mark.proof
def test_poison_fits_the_precision() -> None:
    for precision, sizes in (
        ("float64", {1e3, 1.0, 30.0}),
        ("float32", {1e3, 1.0, 30.0}),
        ("bfloat16", {4.0}),
        ("float16", {4.0}),
    ):
        probe = case(precision=precision).probe
        assert set(gathered(lambda draw, probe=probe: dependence.poison(probe, draw))) == sizes


def test_output_unchanged_is_bit_exact() -> None:
    rows = np.ones((2, 4), bool)
    rows[1, 1] = False
    after = X.copy()
    after[1, 1] = np.nan
    dependence.output_unchanged(X, after, rows, what="before")
    after[0, 0, 0] += 2.0**-50
    with pytest.raises(Violation, match=r"^The output before differs"):
        dependence.output_unchanged(X, after, rows, what="before")


def asked(bend: Bend, **about: Any) -> None:
    one = case(bend=bend, **about)
    dependence.depends_on_visible_positions(seeded(one), one, one.output())


@pytest.mark.parametrize("precision", ["float64", "float32", "bfloat16", "float16"])
@pytest.mark.parametrize("mask", [PADDING, CAUSAL, None])
@claimed()
def test_output_depends_on_visible_positions(precision: str, mask: Any) -> None:
    asked(straight, mask=mask, precision=precision)


@pytest.mark.parametrize(
    "bend",
    [
        lambda answer, part: np.zeros_like(answer),
        lambda answer, part: np.full_like(answer, 0.5),
        lambda answer, part: part.inputs[0],
        lambda answer, part: np.where(PADDING[:, 0, 0][..., None], 1.0, answer),
    ],
)
@pytest.mark.parametrize("mask", [PADDING, CAUSAL, None])
def test_constant_and_copy_depend_on_nothing(bend: Bend, mask: Any) -> None:
    text = r"^The output does not depend on the positions that may be attended to "
    with pytest.raises(
        Violation, match=text + r"\(observed at positions \[\d, \d\] of the samples\)\.$"
    ):
        asked(bend, mask=mask)


def test_in_single_precision_a_position_changes_with_the_others() -> None:
    asked(lambda answer, part: part.inputs[0], precision="float32")
    with pytest.raises(Violation):
        asked(lambda answer, part: np.zeros_like(answer), precision="float32")


def test_sample_whose_positions_see_only_themselves_is_left_out() -> None:
    mask = np.stack([np.ones((1, 4, 4), bool), np.eye(4, dtype=bool)[None]])

    def bend(answer: Any, part: Any) -> Any:
        answer[0], answer[1] = 0.0, part.calls
        return answer

    with pytest.raises(Violation):
        asked(bend, mask=mask)


def test_in_half_precision_a_varied_output_is_asked_for() -> None:
    asked(lambda answer, part: X, precision="bfloat16")
    asked(lambda answer, part: np.sign(X) + (X == 0), precision="bfloat16")
    for constant in (np.zeros_like(X), np.where(PADDING[:, 0, 0][..., None], 1.0, X)):
        with pytest.raises(Violation, match=r"^The output is one constant\.$"):
            asked(lambda answer, part, constant=constant: constant, precision="float16")


def test_single_position_has_nothing_to_depend_on() -> None:
    alone = np.eye(4, dtype=bool)[None, None]
    asked(lambda answer, part: np.zeros_like(answer), mask=alone)


def test_one_dependent_sample_is_enough() -> None:
    def bend(answer: Any, part: Any) -> Any:
        answer[0] = 0.0
        return answer

    asked(bend)


def deaf(step: int) -> Bend:
    """Return what makes one step of the second sample answer as if there were no memory."""

    def bend(answer: Any, part: Any) -> Any:
        answer[1, step] = 0.5
        return answer

    return bend


def heeded(row: int, bend: Bend = straight, **more: Any) -> None:
    one = case("decoder_layer", bend)
    dependence.depends_on_memory(seeded(one), one, row, **more)


@claimed()
def test_decoder_depends_on_memory() -> None:
    for row in range(5):
        heeded(row)
        heeded(row, scale=30.0)


def test_steps_independent_of_the_memory_are_counted() -> None:
    text = (
        r"^The output does not depend on row 2 of the memory; number of steps that may "
        r"attend to it: {}\.$"
    )
    with pytest.raises(Violation, match=text.format(1)):
        heeded(2, deaf(3))
    with pytest.raises(Violation, match=text.format(8)):
        heeded(2, lambda answer, part: np.zeros_like(answer))
    with pytest.raises(Violation, match=text.format(4)):
        heeded(2, lambda answer, part: np.zeros_like(answer), steps=slice(2, None))
    heeded(4, deaf(3))  # a row that the second sample may not read
    heeded(2, deaf(3), steps=slice(0, 3))


@pytest.mark.parametrize("scale", [{}, {"scale": 30.0}])
def test_row_of_the_memory_is_changed_as_far_as_asked_for(scale: Any) -> None:
    one = case("decoder_layer")
    dependence.depends_on_memory(seeded(one), one, 2, **scale)
    memory: Any = one.probe.part.inputs[1]  # type: ignore[attr-defined]
    assert (memory[:, 2] == seeded(one).floats(2, 5, 6, **scale)[:, 2]).all()
    assert (np.delete(memory, 2, axis=1) == np.delete(MEMORY, 2, axis=1)).all()


def test_change_is_distinguished_by_position() -> None:
    one = case("decoder_layer")
    memory = MEMORY.copy()
    memory[0, 2] += 1.0
    distinct = dependence._distinguishable(one, one.but(memory=memory))
    assert distinct.tolist() == [[True] * 4, [False] * 4]


def test_change_below_rounding_needs_no_dependence() -> None:
    one = case("decoder_layer")
    one.probe.load(layer_calls.zero_maps(one.probe.parameters, ["cross_attention.output"]))
    dependence.depends_on_memory(seeded(one), one, 2)


def test_reach_is_where_the_gradient_is_not_zero() -> None:
    distinct: list[Any] = []

    class Pulled(OraclePart):
        def vjp(self, inputs: Any, cotangent: Any) -> Gradient:
            distinct.append(cotangent)
            first, second = np.zeros((2, 4, 6)), np.zeros((2, 5, 6))
            first[0, 1, 3] = 1e-300
            second[1, 4, 0] = -1.0
            return Gradient(cotangent, (first, second, None, None), {})

    one = case("decoder_layer", part=Pulled)
    assert {tuple(at) for at in np.argwhere(dependence.gradient_reach(seeded(one), one, 2))} == {
        (0, 1)
    }
    assert {tuple(at) for at in np.argwhere(dependence.gradient_reach(seeded(one), one, 1, 1))} == {
        (1, 4)
    }
    assert not distinct[0][:, [0, 1, 3]].any()
    assert distinct[0][:, 2].any(axis=-1).all()
    assert (distinct[0][:, 2] == seeded(one).floats(2, 6)).all()
    with pytest.raises(Violation, match=r"^No gradient reaches the input number 2\.$"):
        dependence.gradient_reach(seeded(one), one, 2, 2)


def test_permuted_mask_keeps_each_pair() -> None:
    order = np.array([2, 0, 3, 1])
    whole = np.random.default_rng(5).random((2, 1, 4, 4)) < 0.5
    turned = layer_calls.permute_mask(whole, order)
    assert turned is not None
    assert all(
        (turned[..., i, j] == whole[..., order[i], order[j]]).all()
        for i in range(4)
        for j in range(4)
    )
    padding = layer_calls.permute_mask(PADDING, order)
    assert padding is not None
    assert (padding[:, 0, 0] == PADDING[:, 0, 0][:, order]).all()
    assert layer_calls.permute_mask(None, order) is None
