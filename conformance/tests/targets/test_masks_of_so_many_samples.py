"""Functions that make a mask for so many samples: their number is given, and is no length."""

from pathlib import Path

import pytest
from mistaken_code import adapted, broken, edited

SOURCE = '''
import torch


def build_causal_mask(seq_len: int, batch_size: int, device, dtype=torch.float32):
    """Return what is added to scores: minus infinity hides a later token, 0 shows it."""
    hidden = torch.full((seq_len, seq_len), float("-inf"), dtype=dtype, device=device).triu(1)
    return hidden[None, None].expand(batch_size, -1, -1, -1)


def build_padding_mask(tokens, pad, batch_size):
    """Return a mask in which True may be attended."""
    return (tokens != pad).view(batch_size, 1, 1, -1)
'''
CAUSAL = ["masks.causal-shape", "masks.causal-keeps-past", "masks.causal-blocks-future"]


@pytest.mark.parametrize(
    "first", ["seq_len: int, batch_size: int", "batch_size: int, seq_len: int"]
)
def test_causal_mask_of_so_many_samples_conforms(tmp_path: Path, first: str) -> None:
    code = edited(SOURCE, ("seq_len: int, batch_size: int", first))
    assert broken(adapted(tmp_path, "build_causal_mask", code), *CAUSAL) == []


def test_mask_of_so_many_samples_that_shows_the_next_one_is_broken(tmp_path: Path) -> None:
    code = edited(SOURCE, ("triu(1)", "triu(2)"))
    made = adapted(tmp_path, "build_causal_mask", code, mask="additive")
    assert broken(made, "masks.causal-blocks-future")


def test_padding_mask_gets_the_number_of_samples(tmp_path: Path) -> None:
    made = adapted(tmp_path, "build_padding_mask", SOURCE)
    assert broken(made, "masks.padding-keeps-exactly-real-tokens", "masks.padding-shape") == []
