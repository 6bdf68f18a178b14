"""Functions that make a table of positions of a length and a width."""

from pathlib import Path

import pytest
from mistaken_code import adapted, asked_or_broken, broken
from proof import share

from attentest.targets.members import members

CODE = """
import numpy as np
import torch


def get_sinusoid_encoding_table(n_position, d_hid, padding_idx=None):
    def angles(position):
        return [position / np.power(10000, 2 * (j // 2) / d_hid) for j in range(d_hid)]

    table = np.array([angles(one) for one in range(n_position)])
    table[:, 0::2] = np.sin(table[:, 0::2])
    table[:, 1::2] = np.cos(table[:, 1::2])
    if padding_idx is not None:
        table[padding_idx] = 0.0
    return torch.FloatTensor(table)
"""
NAME, FORMULA = "get_sinusoid_encoding_table", "positional_encoding.formula"


@share(2, rest=1)
@pytest.mark.parametrize("result", ["torch.FloatTensor(table)", "torch.tensor(table)[None]"])
def test_table_of_a_length_and_a_width_is_judged(tmp_path: Path, result: str) -> None:
    backend = adapted(tmp_path, NAME, CODE.replace("torch.FloatTensor(table)", result))
    assert broken(backend, FORMULA) == []
    compile(backend.written(), "own_backend.py", "exec")


def test_names_of_a_length_and_a_width_in_any_order_are_read(tmp_path: Path) -> None:
    code = CODE.replace("n_position, d_hid, padding_idx=None", "depth, position, padding_idx=None")
    code = (
        code.replace("n_position", "position").replace("d_hid", "depth").replace(NAME, "pe_table")
    )
    read = adapted(tmp_path, "pe_table", code, component="positional_encoding")
    assert broken(read, FORMULA) == []


@share(2, rest=1)
@pytest.mark.parametrize(("right", "wrong"), [("j // 2", "j"), ("np.cos", "np.sin")])
def test_wrong_tables_do_not_pass(tmp_path: Path, right: str, wrong: str) -> None:
    assert asked_or_broken(tmp_path, NAME, CODE, right, wrong, FORMULA)


def test_table_that_begins_at_another_position_is_an_assumption(tmp_path: Path) -> None:
    code = CODE.replace("in range(n_position)", "in range(1, n_position + 1)")
    assert any("position_offset" in one for one in adapted(tmp_path, NAME, code).assumed)


def test_function_that_its_file_does_not_call_is_listed(tmp_path: Path) -> None:
    file = tmp_path / "tables.py"
    for text, listed in ((CODE, "positional_encoding"), (f"{CODE}\n# {NAME}(8, 4)\n", "")):
        file.write_text(text)
        assert [one.component for one in members(str(file)) or []] == [listed]


OF_TORCH = """
import math

import torch


def positional_encoding(d_model, length, device):
    pe = torch.zeros(length, d_model, device=device)
    position = torch.arange(0, length, dtype=torch.float, device=device).unsqueeze(1)
    rates = torch.arange(0, d_model, 2, device=device).float() * -(math.log(10000.0) / d_model)
    pe[:, 0::2] = torch.sin(position * rates.exp())
    pe[:, 1::2] = torch.cos(position * rates.exp())
    return pe.unsqueeze(0)


def get_positional_encoding(d_model, max_len=5000):
    return positional_encoding(d_model, max_len, "cpu").transpose(0, 1).requires_grad_(False)
"""


@pytest.mark.parametrize("name", ["positional_encoding", "get_positional_encoding"])
def test_device_and_a_length_with_a_default_are_read(tmp_path: Path, name: str) -> None:
    assert broken(adapted(tmp_path, name, OF_TORCH), FORMULA) == []
    assert asked_or_broken(tmp_path, name, OF_TORCH, "torch.cos", "torch.sin", FORMULA)
