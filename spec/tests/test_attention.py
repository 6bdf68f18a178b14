"""The attention oracle against closed forms, values by hand, and torch's own function."""

import math

import numpy as np
import pytest
import torch
from torch.nn import functional

from attentest_spec.attention import attention, scores, softmax
from attentest_spec.choices import PAPER, Value
from attentest_spec.setting import Array, Floats, Setting

GIVEN = Setting()
EMPTY = np.array([[[[True, True, False]], [[False, False, False]]]]).swapaxes(1, 2)
"""A mask (1, 1, 2, 3) whose second query may attend to nothing."""


def drawn(rng: np.random.Generator) -> tuple[Floats, Floats, Floats]:
    """Draw query (2, 3, 5, 7), key (2, 3, 11, 7) and value (2, 3, 11, 13)."""
    return (
        rng.normal(size=(2, 3, 5, 7)),
        rng.normal(size=(2, 3, 11, 7)),
        rng.normal(size=(2, 3, 11, 13)),
    )


def of_torch(query: Floats, key: Floats, value: Floats, mask: Array | None = None) -> Floats:
    """Compute attention with torch, which also reads True as kept."""
    q, k, v = (torch.from_numpy(array) for array in (query, key, value))
    keep = None if mask is None else torch.from_numpy(mask)
    found: Floats = functional.scaled_dot_product_attention(q, k, v, attn_mask=keep).numpy()
    return found


def choosing(**choices: Value) -> Setting:
    return Setting(choices=PAPER.but(**choices))


def test_two_keys_by_hand() -> None:
    query = np.array([[[[0.0, math.sqrt(2.0)]]]])
    identity = np.eye(2)[None, None]
    output, weights = attention(GIVEN, query, identity, identity)
    expected = np.array([1.0, math.e]) / (1.0 + math.e)
    np.testing.assert_allclose(weights[0, 0, 0], expected, rtol=1e-15)
    np.testing.assert_allclose(output[0, 0, 0], expected, rtol=1e-15)


def test_one_key_returns_its_value(rng: np.random.Generator) -> None:
    query, key, value = drawn(rng)
    output, weights = attention(GIVEN, query, key[:, :, :1], value[:, :, :1])
    assert (weights == 1.0).all()
    assert (output == value[:, :, :1]).all()


def test_equal_scores_give_the_mean(rng: np.random.Generator) -> None:
    query, key, value = drawn(rng)
    output, _ = attention(GIVEN, np.zeros_like(query), key, value)
    np.testing.assert_allclose(
        output, np.broadcast_to(value.mean(2, keepdims=True), output.shape), atol=1e-15
    )


def test_scores_are_divided_by_the_root_of_the_width() -> None:
    ones = np.ones((1, 1, 1, 9))
    assert scores(ones, ones).item() == 3.0


def test_softmax_of_logarithms_is_their_share() -> None:
    np.testing.assert_allclose(softmax(np.log([1.0, 2.0, 5.0])), [0.125, 0.25, 0.625], rtol=1e-15)


@pytest.mark.parametrize("size", [1.0, 1e3, 1e6])
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_softmax_of_huge_scores(size: float, sign: float) -> None:
    weights = softmax(sign * size + np.log([1.0, 3.0]))
    np.testing.assert_allclose(weights, [0.25, 0.75], rtol=1e-16 * size * 4 + 1e-15)


SINGLE = choosing(softmax_arithmetic="float32")


def test_a_softmax_in_float32_gives_numbers_of_float32(rng: np.random.Generator) -> None:
    output, weights = attention(SINGLE, *(inputs := drawn(rng)))
    assert output.dtype == weights.dtype == np.float64
    assert (weights.astype(np.float32) == weights).all()
    single = torch.from_numpy(scores(*inputs[:2])).softmax(-1, dtype=torch.float32)
    np.testing.assert_array_max_ulp(weights.astype(np.float32), single.numpy(), maxulp=8)
    np.testing.assert_array_equal(output, weights @ inputs[2])


def test_scores_that_float32_cannot_tell_apart_share_the_weight() -> None:
    query, key = np.ones((1, 1, 1, 1)), np.array([[[[1.0], [1.0 + 1e-9]]]])
    assert attention(SINGLE, query, key, key)[1].tolist() == [[[[0.5, 0.5]]]]
    assert attention(GIVEN, query, key, key)[1].tolist() != [[[[0.5, 0.5]]]]


def test_a_softmax_in_float32_hides_what_is_masked() -> None:
    query, key = np.ones((1, 1, 2, 1)), np.array([[[[1.0], [2.0], [3.0]]]])
    _, weights = attention(SINGLE, query, key, key, EMPTY)
    assert weights[0, 0, 0, 2] == 0.0
    assert np.isnan(weights[0, 0, 1]).all()


def test_equals_torch_without_a_mask(rng: np.random.Generator) -> None:
    inputs = drawn(rng)
    np.testing.assert_allclose(attention(GIVEN, *inputs)[0], of_torch(*inputs), atol=1e-12)


@pytest.mark.parametrize("shape", [(2, 1, 1, 11), (1, 1, 5, 11), (2, 1, 5, 11), (2, 3, 5, 11)])
def test_equals_torch_under_every_shape_of_mask(
    rng: np.random.Generator, shape: tuple[int, ...]
) -> None:
    inputs = drawn(rng)
    mask = rng.random(shape) < 0.5
    mask[..., 0] = True
    output, weights = attention(GIVEN, *inputs, mask)
    np.testing.assert_allclose(output, of_torch(*inputs, mask), atol=1e-12)
    assert (weights[~np.broadcast_to(mask, weights.shape)] == 0.0).all()
    np.testing.assert_allclose(weights.sum(-1), 1.0, rtol=1e-14)


def test_equals_torch_on_strided_inputs(rng: np.random.Generator) -> None:
    query, key, value = (array.swapaxes(1, 2).copy().swapaxes(1, 2) for array in drawn(rng))
    assert not query.flags.c_contiguous
    np.testing.assert_allclose(
        attention(GIVEN, query, key, value)[0], of_torch(query, key, value), atol=1e-12
    )


@pytest.mark.parametrize(("option", "share"), [("uniform", 1 / 3), ("zero", 0.0)])
def test_fully_masked_row_as_chosen(option: str, share: float, rng: np.random.Generator) -> None:
    query, key, value = rng.normal(size=(3, 1, 1, 3, 2))
    given = choosing(fully_masked_row=option)
    output, weights = attention(given, query[:, :, :2], key, value, EMPTY)
    np.testing.assert_allclose(weights[0, 0, 1], share)
    np.testing.assert_allclose(output[0, 0, 1], share * value[0, 0].sum(0), atol=1e-15)
    assert weights[0, 0, 0].sum() == pytest.approx(1.0, rel=1e-15)


@pytest.mark.parametrize("option", ["nan", "unspecified"])
def test_fully_masked_row_without_a_value(option: str, rng: np.random.Generator) -> None:
    query, key, value = rng.normal(size=(3, 1, 1, 3, 2))
    output, _ = attention(choosing(fully_masked_row=option), query[:, :, :2], key, value, EMPTY)
    assert np.isnan(output[0, 0, 1]).all()
    assert np.isfinite(output[0, 0, 0]).all()


@pytest.mark.parametrize("size", [1e4, 1e6, 1e12])
def test_an_exact_fill_loses_to_every_score(size: float) -> None:
    query = np.array([[[[1.0]]]])
    key = np.array([[[[-size], [0.0]]]])
    mask = np.array([[[[True, False]]]])
    assert attention(GIVEN, query, key, key, mask)[1].tolist() == [[[[1.0, 0.0]]]]


def test_a_finite_fill_lets_a_masked_key_win() -> None:
    query = np.array([[[[1.0]]]])
    key = np.array([[[[-200.0], [0.0]]]])
    value = np.array([[[[1.0], [5.0]]]])
    mask = np.array([[[[True, False]]]])
    assert attention(GIVEN, query, key, value, mask)[0].item() == 1.0
    filled, _ = attention(choosing(mask_fill=-100.0), query, key, value, mask)
    assert filled.item() == pytest.approx(5.0, abs=1e-12)


def test_scores_of_plain_matrices() -> None:
    query, key = np.array([[1.0, 2.0, 2.0, 4.0]]), np.array([[2.0, 4.0, 4.0, 8.0], [0.0] * 4])
    assert scores(query, key).tolist() == [[25.0, 0.0]]


def test_softmax_of_a_row_is_untouched_by_rows_far_from_it() -> None:
    far = np.log([[1.0, 3.0], [1.0, 3.0]]) + np.array([[0.0], [1e6]])
    np.testing.assert_allclose(softmax(far), [[0.25, 0.75]] * 2, rtol=1e-9)


def test_softmax_of_nothing_but_minus_infinity_has_no_value() -> None:
    found = softmax(np.array([[-np.inf] * 3, [-np.inf, 0.0, 0.0]]))
    np.testing.assert_array_equal(found, [[np.nan] * 3, [0.0, 0.5, 0.5]])


def test_finite_fill_replaces_the_score_of_a_masked_key() -> None:
    query = np.array([[[[1.0]]]])
    key = np.log(np.array([[[[2.0], [64.0]]]]))
    filled = choosing(mask_fill=float(np.log(0.5)))
    _, weights = attention(filled, query, key, key, np.array([[[[True, False]]]]))
    np.testing.assert_allclose(weights, [[[[0.8, 0.2]]]], rtol=1e-15)


def test_row_without_a_key_has_the_mean_of_its_own_values(rng: np.random.Generator) -> None:
    query, key, value = drawn(rng)
    mask = rng.random((2, 3, 5, 11)) < 0.7
    mask[1, 2, 3] = False
    output, weights = attention(choosing(fully_masked_row="uniform"), query, key, value, mask)
    np.testing.assert_allclose(output[1, 2, 3], value[1, 2].mean(axis=0), atol=1e-15)
    kept = mask.any(axis=-1)
    np.testing.assert_allclose(output[kept], of_torch(query, key, value, mask)[kept], atol=1e-12)
    np.testing.assert_allclose(output, weights @ value, atol=1e-15)


def test_single_query_without_a_key_is_as_chosen() -> None:
    ones = np.ones((1, 1, 1, 1))
    masks = np.zeros((1, 1, 1, 1), dtype=bool)
    assert attention(choosing(fully_masked_row="zero"), ones, ones, ones, masks)[0].item() == 0.0
    found, _ = attention(choosing(fully_masked_row="uniform"), ones, ones, 3 * ones, masks)
    assert found.item() == 3.0


@pytest.mark.parametrize("fill", [-1e4, -1e9, -1e30])
def test_finite_fill_of_any_size_wins_over_lower_scores(fill: float) -> None:
    query, key = np.ones((1, 1, 1, 1)), np.array([[[[10 * fill], [0.0]]]])
    filled = choosing(mask_fill=fill)
    _, weights = attention(filled, query, key, key, np.array([[[[True, False]]]]))
    assert weights.tolist() == [[[[0.0, 1.0]]]]


def test_softmax_of_far_scores_is_exactly_zero() -> None:
    assert softmax(np.array([0.0, -800.0])).tolist() == [1.0, 0.0]
    assert softmax(np.array([0.0, -700.0]))[1] == np.exp(-700.0)


@pytest.mark.parametrize("fill", [-100.0, -1e9])
def test_a_row_without_a_key_is_as_chosen_under_a_finite_fill_too(fill: float) -> None:
    ones, hidden = np.ones((1, 1, 2, 1)), np.zeros((1, 1, 1, 2), dtype=bool)
    zero = choosing(mask_fill=fill, fully_masked_row="zero")
    assert (attention(zero, ones, ones, ones, hidden)[0] == 0.0).all()
    assert np.isnan(attention(choosing(mask_fill=fill), ones, ones, ones, hidden)[0]).all()


def test_scores_are_rounded_to_float32_before_its_softmax() -> None:
    query, key = np.ones((1, 1, 1, 1)), np.array([[[[1e6], [1e6 + 0.02]]]])
    assert attention(SINGLE, query, key, key)[1].tolist() == [[[[0.5, 0.5]]]]
    assert attention(GIVEN, query, key, key)[1][0, 0, 0, 1] > 0.504


def test_a_softmax_in_float32_is_one_under_a_mask_too(rng: np.random.Generator) -> None:
    mask = np.ones((1, 1, 1, 11), dtype=bool)
    mask[..., 4] = False
    _, weights = attention(SINGLE, *drawn(rng), mask)
    assert (weights.astype(np.float32) == weights).all()


def test_every_row_without_a_key_is_as_chosen(rng: np.random.Generator) -> None:
    query, key = rng.normal(size=(1, 1, 40, 2)), rng.normal(size=(1, 1, 3, 2))
    mask = np.zeros((1, 1, 40, 3), dtype=bool)
    mask[0, 0, 17] = True
    weights = attention(choosing(fully_masked_row="zero"), query, key, key, mask)[1][0, 0]
    assert (weights.any(axis=-1) == mask[0, 0, :, 0]).all()
