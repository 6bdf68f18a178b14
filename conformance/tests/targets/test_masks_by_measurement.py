"""Masks of padding whose arguments no name says: lengths, and tokens with the sequence first."""

from pathlib import Path

import pytest
from mistaken_code import adapted, asked_or_broken, broken

from attentest.targets.adapt import Unclear

EXACT = "masks.padding-keeps-exactly-real-tokens"
CODE = """
import torch


def sequence_mask(length, max_length=None):
    if max_length is None:
        max_length = length.max()
    return torch.arange(max_length, device=length.device)[None] < length[:, None]


def lens_to_mask(t, length=None):
    length = t.amax() if length is None else length
    return torch.arange(length, device=t.device)[None] < t[:, None]


def make_len_mask(inp):
    return (inp == 0).transpose(0, 1)
"""


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("sequence_mask", "length carries lengths"),
        ("lens_to_mask", "t carries lengths"),
        ("make_len_mask", "inp carries tokens with the sequence first"),
    ],
)
def test_arguments_are_read_by_measurement(tmp_path: Path, name: str, said: str) -> None:
    backend = adapted(tmp_path, name, CODE)
    assert any(said in one for one in backend.assumed)
    assert broken(backend, EXACT) == []
    with pytest.raises(Unclear):
        adapted(tmp_path, name, CODE, strict=True)


@pytest.mark.parametrize(
    ("name", "right", "wrong"),
    [
        ("sequence_mask", "< length[", "<= length["),
        ("sequence_mask", "< length[", "> length["),
        ("lens_to_mask", "< t[", "< t[0] + 0 * t["),
        ("make_len_mask", "inp == 0", "inp == inp[-1:]"),
        ("make_len_mask", ".transpose(0, 1)", ".transpose(0, 1).flip(1)"),
    ],
)
def test_wrong_masks_are_no_such_reading(tmp_path: Path, name: str, right: str, wrong: str) -> None:
    assert asked_or_broken(tmp_path, name, CODE, right, wrong, EXACT)
