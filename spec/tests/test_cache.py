"""Decoding with a cache against decoding without one, and against weights by hand."""

import numpy as np
import pytest

from attentest_spec.attention import attention
from attentest_spec.cache import cached_decoding
from attentest_spec.choices import Choices
from attentest_spec.model import model
from attentest_spec.parameters import draw, shapes
from attentest_spec.setting import Floats, Setting, Tokens
from attentest_spec.sizes import Sizes

SIZES = Sizes(d_model=4, heads=2, d_ff=5, layers=1, source_pad=3, target_pad=5)
CHOICES = Choices(tying="none")
SOURCE = np.array([[1, 2, 4], [7, 3, 3]])
TARGET = np.array([[1, 2, 3, 4], [6, 7, 8, 9]])
ROWS = [0, 1]


def given(**changes: str) -> Setting:
    """Return a setting with the same random parameters at every call."""
    rng = np.random.default_rng(3)
    return Setting(SIZES, CHOICES.but(**changes), draw("cached_decoding", SIZES, CHOICES, rng))


def run(
    chunks: list[int],
    after: list[int],
    origin: list[list[int]] | None = None,
    target: Tokens = TARGET,
    source: Tokens = SOURCE,
    **choices: str,
) -> Floats:
    """Return the output of a program."""
    rows = np.array(origin or [ROWS] * len(chunks))
    return cached_decoding(
        given(**choices), source, target, np.array(chunks), np.array(after), rows
    )


@pytest.mark.parametrize("chunks", [[4], [1, 1, 1, 1], [2, 2], [1, 3]])
def test_chunks_give_the_output_of_the_model(chunks: list[int]) -> None:
    found = run(chunks, list(range(-1, len(chunks) - 1)))
    np.testing.assert_allclose(found, model(given(), SOURCE, TARGET), rtol=1e-13)


def test_decodings_in_turn_are_those_of_each_alone() -> None:
    found = run([1, 1, 1, 1], [-1, -1, 0, 1])
    for columns in ([0, 2], [1, 3]):
        alone = model(given(), SOURCE, TARGET[:, columns])
        np.testing.assert_allclose(found[:, columns], alone, rtol=1e-13)


def test_prefix_that_is_continued_twice_is_the_same_both_times() -> None:
    found = run([2, 1, 1], [-1, 0, 0])
    for columns in ([0, 1, 2], [0, 1, 3]):
        alone = model(given(), SOURCE, TARGET[:, columns])
        np.testing.assert_allclose(found[:, columns], alone, rtol=1e-13)


def test_reordered_rows_continue_other_prefixes() -> None:
    source = SOURCE[[0, 0]]
    found = run([2, 1, 1], [-1, 0, 1], [ROWS, [1, 1], [1, 0]], source=source)
    prefix = np.array([[6, 7, 8, 4], [6, 7, 3, 9]])
    np.testing.assert_allclose(found[:, 3], model(given(), source, prefix)[:, 3], rtol=1e-13)


def test_padding_has_a_position_by_columns_and_none_by_tokens() -> None:
    padded, bare = np.array([[1, 5, 2, 4], [6, 7, 8, 9]]), np.array([[1, 2, 4]])
    columns = run([3, 1], [-1, 0], target=padded)
    tokens = run([3, 1], [-1, 0], target=padded, cache_positions="tokens")
    np.testing.assert_allclose(columns, model(given(), SOURCE, padded), rtol=1e-13)
    alone = model(given(), SOURCE[:1], bare)
    np.testing.assert_allclose(tokens[:1, [0, 2, 3]], alone, rtol=1e-13)
    np.testing.assert_allclose(tokens[1], columns[1], rtol=1e-13)
    assert np.abs(tokens[0, 3] - columns[0, 3]).max() > 1e-3


def test_row_of_padding_alone_has_no_output_by_tokens() -> None:
    left = np.array([[5, 1, 2, 4], [6, 7, 8, 9]])
    found = run([1, 3], [-1, 0], target=left, cache_positions="tokens")
    alone = model(given(), SOURCE[:1], left[:1, 1:])
    np.testing.assert_allclose(found[:1, 1:], alone, rtol=1e-13)


def test_weights_by_hand_of_the_chapter() -> None:
    keys = np.log([2.0, 3.0, 5.0])[None, None, :, None]
    one = np.ones((1, 1, 1, 1))
    for count, expected in ((2, [0.4, 0.6]), (3, [0.2, 0.3, 0.5])):
        _, weights = attention(Setting(), one, keys[:, :, :count], keys[:, :, :count])
        np.testing.assert_allclose(weights[0, 0, 0], expected, rtol=1e-14)
    overwritten = keys[:, :, [0, 2]]
    _, weights = attention(Setting(), one, overwritten, overwritten)
    np.testing.assert_allclose(weights[0, 0, 0], [2 / 7, 5 / 7], rtol=1e-14)


def test_parameters_are_those_of_the_model() -> None:
    assert shapes("cached_decoding", SIZES, CHOICES) == shapes("model", SIZES, CHOICES)
