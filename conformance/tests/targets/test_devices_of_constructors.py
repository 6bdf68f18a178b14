"""Code whose constructor is given a device: what it makes there stays where the code is moved."""

from pathlib import Path
from typing import Any

import pytest

import attentest
from attentest.judging.bench import Bench
from attentest.judging.judge import judge
from attentest_spec import Backend

TABLE = """
import torch
from torch import nn


class PositionalEncoding(nn.Module):
    def __init__(self, d_model, max_len, device):
        super().__init__()
        place = torch.arange(max_len, device=device).float()[:, None]
        angle = place / 10000 ** (torch.arange(0, d_model, 2, device=device).float() / d_model)
        self.table = torch.zeros(max_len, d_model, device=device)
        self.table[:, 0::2], self.table[:, 1::2] = angle.sin(), angle.cos()

    def forward(self, x):
        return x + self.table[: x.shape[1]]
"""
CLAUSES = ("follows-moves", "moved-once", "formula")


def adapted(folder: Path, *edits: tuple[str, str], **settled: object) -> Any:
    """Return the table with `edits`, as a backend."""
    source = TABLE
    for old, new in edits:
        assert old in source
        source = source.replace(old, new)
    (folder / "own.py").write_text(source, encoding="utf-8")
    return attentest.adapted(f"{folder / 'own.py'}:PositionalEncoding", **settled)


def statuses(backend: Backend) -> list[str]:
    """Return the statuses of the clauses on moves, and of the formula."""
    bench = Bench.for_status(backend, effort=0.2)
    return [judge(bench, f"positional_encoding.{one}").status.value for one in CLAUSES]


def test_tables_on_a_device_that_is_given_may_stay_there(tmp_path):
    read = adapted(tmp_path)
    assert not read.limits.any_device
    assert "given as device: table is left there" in "\n".join(read.assumed)
    assert "any_device=False" in read.written()
    assert statuses(read) == ["pass", "absent", "pass"]


def test_strict_judges_a_table_that_stays(tmp_path):
    read = adapted(tmp_path, strict=True)
    assert read.limits.any_device
    assert statuses(read)[0] == "violation"


@pytest.mark.parametrize(
    "edits",
    [
        ((", device)", ")"), (", device=device", "")),
        (("torch.zeros(max_len, d_model, device=device)", "torch.zeros(max_len, d_model)"),),
    ],
    ids=["no-device", "another-device"],
)
def test_tables_on_another_device_have_to_follow(edits, tmp_path):
    read = adapted(tmp_path, *edits)
    assert read.limits.any_device
    assert statuses(read)[0] == "violation"


ZEROS = "torch.zeros(max_len, d_model, device=device)"


@pytest.mark.parametrize(
    "edit",
    [
        ("x + self.table[: x.shape[1]]", "x + self.table[: x.shape[1]].to(x.device)"),
        (f"self.table = {ZEROS}", f'self.register_buffer("table", {ZEROS})'),
    ],
    ids=["by-the-call", "a-buffer"],
)
def test_tables_that_follow_are_no_assumption(edit, tmp_path):
    read = adapted(tmp_path, edit)
    assert read.limits.any_device
    assert statuses(read)[0] == "pass"


KEPT = (
    ("super().__init__()\n", "super().__init__()\n        self.device = device\n"),
    (ZEROS, "torch.zeros(max_len, d_model)"),
)
MOVED = (
    "        return x + self.table[: x.shape[1]]",
    "        rows = self.table[: x.shape[1]]\n        return x + rows.to({})",
)


def test_tables_that_calls_move_to_the_given_device_may_stay_there(tmp_path):
    read = adapted(tmp_path, *KEPT, (MOVED[0], MOVED[1].format("self.device")))
    assert "given as device: table is left there" in "\n".join(read.assumed)
    assert statuses(read) == ["pass", "absent", "pass"]


def test_tables_that_calls_move_to_another_device_have_to_follow(tmp_path):
    read = adapted(tmp_path, *KEPT, (MOVED[0], MOVED[1].format("'cpu'")))
    assert read.limits.any_device
    assert statuses(read)[0] == "violation"


OF_FILE = (
    ("from torch import nn\n", "from torch import nn\n\nDEVICE = torch.device('cpu')\n"),
    (", device)", ")"),
    ("device=device", "device=DEVICE"),
)


def test_tables_on_a_device_that_their_file_chooses_may_stay_there(tmp_path):
    read = adapted(tmp_path, *OF_FILE)
    assert "its file calls DEVICE: table is left there" in "\n".join(read.assumed)
    assert statuses(read) == ["pass", "absent", "pass"]


def test_tables_on_another_device_than_that_of_their_file_have_to_follow(tmp_path):
    zeros = ("torch.zeros(max_len, d_model, device=DEVICE)", "torch.zeros(max_len, d_model)")
    read = adapted(tmp_path, *OF_FILE, zeros)
    assert read.limits.any_device
    assert statuses(read)[0] == "violation"


CALLS = """
import torch
from torch import nn


class PositionalEncoding(nn.Module):
    def __init__(self, d_model, max_len, device=torch.device("cpu")):
        super().__init__()
        self.d_model, self.max_len = d_model, max_len
        self.place = device

    def forward(self, x):
        table = torch.zeros(self.max_len, self.d_model, device=self.place)
        place = torch.arange(self.max_len, device=self.place).float()[:, None]
        even = torch.arange(0, self.d_model, 2, device=self.place).float()
        angle = place / 10000 ** (even / self.d_model)
        table[:, 0::2], table[:, 1::2] = angle.sin(), angle.cos()
        return x + table[: x.shape[1]]
"""


def test_calls_that_make_tables_on_the_given_device_may_stay_there(tmp_path):
    read = adapted(tmp_path, (TABLE, CALLS))
    assert "given as device, where its calls make tensors" in "\n".join(read.assumed)
    assert statuses(read) == ["pass", "absent", "pass"]


def test_calls_that_make_tables_on_another_device_are_wrong(tmp_path):
    read = adapted(tmp_path, (TABLE, CALLS.replace("device=self.place", "device='cpu'")))
    assert read.limits.any_device
    assert statuses(read)[0] != "pass"


def test_limits_of_use_are_those_of_code_with_an_argument_that_numbers_say(tmp_path):
    read = adapted(tmp_path, (TABLE, CALLS.replace("d_model", "embeds")))
    assert "assumed embeds as d_model" in "\n".join(read.assumed)
    assert statuses(read) == ["pass", "absent", "pass"]
