"""Rotary positions whose tables are arguments, by the names that people give to these."""

import pytest
from mistaken_code import adapted, asked_or_broken, broken

CODE = """
import torch


def rope_tables(head_dim, max_seq, base=10000.0):
    angles = torch.outer(
        torch.arange(max_seq).double(),
        base ** (-torch.arange(0, head_dim, 2).double() / head_dim),
    )
    return angles.cos(), angles.sin()


def apply_rope(x, cos_table, sin_table):
    cos, sin = cos_table[: x.shape[-2]].to(x), sin_table[: x.shape[-2]].to(x)
    even, odd = x[..., 0::2], x[..., 1::2]
    return torch.stack([even * cos - odd * sin, even * sin + odd * cos], -1).flatten(-2)
"""


@pytest.mark.parametrize("name", ["table", "cache", "cached", "values"])
def test_rotary_tables_are_read_by_their_names(name, tmp_path):
    code = CODE.replace("_table,", f"_{name},").replace("_table)", f"_{name})")
    code = code.replace("_table[", f"_{name}[")
    assert not broken(adapted(tmp_path, "apply_rope", code), "rotary.formula")


def test_turns_by_named_tables_pass_under_no_other_sign(tmp_path):
    right, wrong = "even * sin + odd * cos", "even * sin - odd * cos"
    assert asked_or_broken(tmp_path, "apply_rope", CODE, right, wrong, "rotary.formula")


def test_rotary_tables_of_frequencies_are_read_by_their_names(tmp_path):
    code = CODE.replace("cos_table", "cos_freqs").replace("sin_table", "sin_freqs")
    assert not broken(adapted(tmp_path, "apply_rope", code), "rotary.formula")
    right, wrong = "even * cos - odd * sin", "even * sin - odd * cos"
    assert asked_or_broken(tmp_path, "apply_rope", code, right, wrong, "rotary.formula")
