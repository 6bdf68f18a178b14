"""The mask oracles against masks written out by hand, and against torch's triangle."""

import numpy as np
import pytest
import torch

from attentest_spec.masks import causal_mask, padding_mask, target_mask
from attentest_spec.setting import Setting

GIVEN = Setting()


def test_padding_mask_written_out() -> None:
    tokens = np.array([[5, 0, 7], [0, 0, 3]])
    kept = padding_mask(GIVEN, tokens, 0)
    assert kept.dtype == np.bool_
    assert kept.shape == (2, 1, 1, 3)
    assert kept[:, 0, 0].tolist() == [[True, False, True], [False, False, True]]


@pytest.mark.parametrize("pad", [0, 1, 7, 256, -1, -100])
def test_padding_mask_hides_the_pad_id_and_no_other(pad: int) -> None:
    tokens = np.array([[pad, 0, 1, 7, 256, 2**53 + 1, pad]])
    kept = padding_mask(GIVEN, tokens, pad)[0, 0, 0]
    assert kept.tolist() == [int(token) != pad for token in tokens[0]]


def test_causal_mask_written_out() -> None:
    kept = causal_mask(GIVEN, 3)
    assert kept.dtype == np.bool_
    assert kept.shape == (1, 1, 3, 3)
    assert kept[0, 0].tolist() == [[True, False, False], [True, True, False], [True, True, True]]


@pytest.mark.parametrize("length", [1, 2, 7, 13])
def test_causal_mask_is_the_triangle_of_torch(length: int) -> None:
    triangle = torch.ones(length, length, dtype=torch.bool).tril()
    assert (causal_mask(GIVEN, length)[0, 0] == triangle.numpy()).all()


def test_causal_mask_is_the_opposite_of_what_torch_calls_a_mask() -> None:
    blocked = torch.nn.Transformer.generate_square_subsequent_mask(5) == -torch.inf
    assert (causal_mask(GIVEN, 5)[0, 0] == ~blocked.numpy()).all()


def test_target_mask_written_out() -> None:
    kept = target_mask(GIVEN, np.array([[4, 0, 6]]), 0)
    assert kept.dtype == np.bool_
    assert kept.shape == (1, 1, 3, 3)
    assert kept[0, 0].tolist() == [[True, False, False], [True, False, False], [True, False, True]]


def test_target_mask_blocks_pad_keys_and_not_pad_queries() -> None:
    kept = target_mask(GIVEN, np.array([[4, 9, 9], [4, 5, 6]]), 9)
    assert not kept[0, 0, :, 1:].any()
    assert kept[0, 0, :, 0].all()
    assert kept[1, 0].tolist() == causal_mask(GIVEN, 3)[0, 0].tolist()


def test_one_token_makes_a_mask_of_four_axes() -> None:
    assert target_mask(GIVEN, np.array([[3]]), 0).tolist() == [[[[True]]]]
    assert target_mask(GIVEN, np.array([[0]]), 0).tolist() == [[[[False]]]]
