"""A language model with a cache against the model without one, and masks by hand."""

import numpy as np
import pytest

from attentest_spec.choices import Choices
from attentest_spec.language_model import cached_language_model, language_model, visible
from attentest_spec.parameters import draw, shapes
from attentest_spec.setting import Array, Floats, Setting
from attentest_spec.sizes import Sizes

SIZES = Sizes(d_model=8, heads=2, d_ff=5, layers=2, target_vocabulary=13, max_length=12, window=2)
CHOICES = Choices(
    attention_rotary="query-and-key", positional_encoding="none", norm_kind="rms", head_width="d/h"
)
TOKENS = np.array([[1, 2, 3, 4], [6, 7, 8, 9]])
ROWS = [0, 1]


def given(**changes: str) -> Setting:
    """Return a setting with the same random parameters at every call."""
    rng = np.random.default_rng(3)
    return Setting(
        SIZES, CHOICES.but(**changes), draw("cached_language_model", SIZES, CHOICES, rng)
    )


def run(
    chunks: list[int],
    after: list[int],
    origin: list[list[int]] | None = None,
    mask: Array | None = None,
    positions: Array | None = None,
    **choices: str,
) -> Floats:
    """Return the output of a program."""
    rows = np.array(origin or [ROWS] * len(chunks))
    program = np.array(chunks), np.array(after), rows
    return cached_language_model(given(**choices), TOKENS, mask, positions, *program)


@pytest.mark.parametrize("chunks", [[4], [1, 1, 1, 1], [2, 2], [1, 3]])
@pytest.mark.parametrize("window", ["none", "with-query"])
def test_chunks_give_the_output_of_the_whole_text(chunks: list[int], window: str) -> None:
    found = run(chunks, list(range(-1, len(chunks) - 1)), attention_window=window)
    whole = language_model(given(attention_window=window), TOKENS)
    np.testing.assert_allclose(found, whole, rtol=1e-12)


def test_prefix_that_is_continued_twice_is_the_same_both_times() -> None:
    found = run([2, 1, 1], [-1, 0, 0])
    for columns in ([0, 1, 2], [0, 1, 3]):
        alone = language_model(given(), TOKENS[:, columns])
        np.testing.assert_allclose(found[:, columns], alone, rtol=1e-12)


def test_reordered_rows_continue_tokens_mask_and_positions_of_other_rows() -> None:
    mask = np.array([[False, True, True, True], [True, True, True, True]])
    positions = np.array([[0, 0, 2, 2], [0, 1, 1, 3]])
    exchanged = [[0, 1], [1, 0], [0, 1]]
    found = run([2, 1, 1], [-1, 0, 1], exchanged, mask, positions)
    texts = np.array([[6, 7, 3, 4], [1, 2, 8, 9]])
    seen = np.array([[True, True, True, True], [False, True, True, True]])
    whole = language_model(given(), texts, seen, np.array([[0, 1, 2, 2], [0, 0, 1, 3]]))
    np.testing.assert_allclose(found[:, 2:], whole[:, 2:], rtol=1e-12)


def test_new_tokens_have_the_declared_positions_after_padding() -> None:
    mask = np.array([[True, True, False, True], [True, True, True, True]])
    for option in ("columns", "real-tokens"):
        found = run([3, 1], [-1, 0], mask=mask, padded_positions=option)
        whole = language_model(given(padded_positions=option), TOKENS, mask)
        np.testing.assert_allclose(found[mask], whole[mask], rtol=1e-12)


def test_mask_of_a_chunk_by_hand_of_the_chapter() -> None:
    whole = visible(4)[0, 0]
    np.testing.assert_array_equal(whole[2:], [[1, 1, 1, 0], [1, 1, 1, 1]])
    np.testing.assert_array_equal(whole[:2], [[1, 0, 0, 0], [1, 1, 0, 0]])
    near = whole & (np.arange(4) > np.arange(4)[:, None] - 2)
    np.testing.assert_array_equal(near[2:], [[0, 1, 1, 0], [0, 0, 1, 1]])


def test_parameters_are_those_of_the_language_model() -> None:
    own = shapes("cached_language_model", SIZES, CHOICES)
    assert own == shapes("language_model", SIZES, CHOICES)
