"""Masks of lengths alone, which are as long as the longest sequence."""

from pathlib import Path

import pytest
from mistaken_code import adapted, asked_or_broken, broken

import attentest

EXACT = "masks.padding-keeps-exactly-real-tokens"
CODE = '''
import torch


def lengths_to_mask(*lengths, **kwargs):
    """Return True for real positions."""
    (several,) = lengths
    mask = torch.zeros(len(several), int(max(several)), **kwargs)
    for row, one in zip(mask, several):
        row[: int(one)] = 1
    return mask.bool()


def get_mask_from_lengths(lengths):
    places = torch.arange(int(lengths.max()), device=lengths.device)
    return places[None] >= lengths[:, None]
'''


@pytest.mark.parametrize("name", ["lengths_to_mask", "get_mask_from_lengths"])
def test_mask_of_lengths_alone_is_read(tmp_path: Path, name: str) -> None:
    backend = adapted(tmp_path, name, CODE)
    assert any("as long as the longest sequence" in one for one in backend.understood)
    assert broken(backend, EXACT) == []
    written = tmp_path / "adapter.py"
    written.write_text(backend.written())
    assert attentest.check(f"{written}:backend", clauses=[EXACT])[EXACT].status == "pass"


@pytest.mark.parametrize(
    ("name", "right", "wrong"),
    [
        ("lengths_to_mask", "[: int(one)]", "[: int(one) - 1]"),
        ("lengths_to_mask", "[: int(one)]", "[int(one) :]"),
        ("lengths_to_mask", "int(max(several))", "int(max(several)) + 1"),
        ("get_mask_from_lengths", ">=", ">"),
        ("get_mask_from_lengths", "lengths.max())", "lengths.max()) - 1"),
    ],
)
def test_wrong_masks_of_lengths_are_caught(
    tmp_path: Path, name: str, right: str, wrong: str
) -> None:
    assert asked_or_broken(tmp_path, name, CODE, right, wrong, EXACT, "masks.padding-shape")
