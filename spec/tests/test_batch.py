"""The batch oracles against values by hand, and torch's padding of sequences."""

import numpy as np
import pytest
import torch
from torch.nn.utils.rnn import pad_sequence

from attentest_spec.batch import batch, packed_batch, padded_batch
from attentest_spec.choices import Choices
from attentest_spec.masks import target_mask
from attentest_spec.setting import Setting
from attentest_spec.sizes import Sizes

WORDS, LENGTHS = np.array([5, 6, 7, 8]), np.array([3, 1])


def given(*, pad: int = 0, end: int = 2, **choices: str) -> Setting:
    sizes = Sizes(target_pad=pad, source_pad=4, start=1, end=end)
    return Setting(sizes, Choices(**choices))  # type: ignore[arg-type]


def test_worked_batch_of_the_chapter() -> None:
    target = np.array([[1, 5, 6, 7, 2], [1, 8, 2, 0, 0]])
    read, wanted, source, own, count = batch(given(), np.array([[3, 4], [4, 3]]), target)
    assert read.tolist() == [[1, 5, 6, 7], [1, 8, 2, 0]]
    assert wanted.tolist() == [[5, 6, 7, 2], [8, 2, 0, 0]]
    assert source[:, 0, 0].tolist() == [[True, False], [False, True]]
    np.testing.assert_array_equal(own, target_mask(given(), read, 0))
    assert (count.shape, int(count)) == ((), 6)


@pytest.mark.parametrize(
    ("marks", "side", "expected"),
    [
        ("start-and-end", "right", [[1, 5, 6, 7, 2], [1, 8, 2, 0, 0]]),
        ("start-and-end", "left", [[1, 5, 6, 7, 2], [0, 0, 1, 8, 2]]),
        ("end", "right", [[5, 6, 7, 2], [8, 2, 0, 0]]),
        ("none", "left", [[5, 6, 7], [0, 0, 8]]),
    ],
)
def test_worked_padding_of_the_chapter(marks: str, side: str, expected: list[list[int]]) -> None:
    setting = given(sequence_marks=marks, padding_side=side)
    tokens, keep = padded_batch(setting, WORDS, LENGTHS)
    assert tokens.tolist() == expected
    np.testing.assert_array_equal(keep, tokens != 0)


def test_an_end_that_is_the_pad_belongs_to_its_sequence() -> None:
    tokens, keep = padded_batch(given(end=0), WORDS, LENGTHS)
    assert tokens.tolist() == [[1, 5, 6, 7, 0], [1, 8, 0, 0, 0]]
    assert keep.tolist() == [[True] * 5, [True] * 3 + [False] * 2]


@pytest.mark.parametrize("side", ["right", "left"])
def test_equals_the_padding_of_torch(rng: np.random.Generator, side: str) -> None:
    lengths = np.array([4, 1, 6, 3])
    words = rng.integers(6, 11, size=lengths.sum())
    rows = list(torch.from_numpy(words).split(lengths.tolist()))
    expected = pad_sequence(rows, batch_first=True, padding_value=3.0, padding_side=side)
    setting = given(pad=3, sequence_marks="none", padding_side=side)
    np.testing.assert_array_equal(padded_batch(setting, words, lengths)[0], expected)


def test_worked_packing_of_the_chapter() -> None:
    tokens, lengths = np.array([1, 5, 2, 1, 8, 9, 2]), np.array([3, 4])
    read, wanted, position, mask = packed_batch(given(), tokens, lengths)
    assert read.tolist() == [[1, 5, 1, 8, 9]]
    assert wanted.tolist() == [[5, 2, 8, 9, 2]]
    assert position.tolist() == [[0, 1, 0, 1, 2]]
    assert mask[0, 0].astype(int).tolist() == [
        [1, 0, 0, 0, 0],
        [1, 1, 0, 0, 0],
        [0, 0, 1, 0, 0],
        [0, 0, 1, 1, 0],
        [0, 0, 1, 1, 1],
    ]


def test_one_packed_sequence_is_a_batch_of_one() -> None:
    tokens = np.array([1, 5, 6, 2])
    read, wanted, position, mask = packed_batch(given(), tokens, np.array([4]))
    other = batch(given(), tokens[None], tokens[None])
    for one, expected in zip((read, wanted, mask), (other[0], other[1], other[3]), strict=True):
        np.testing.assert_array_equal(one, expected)
    assert position.tolist() == [[0, 1, 2]]
