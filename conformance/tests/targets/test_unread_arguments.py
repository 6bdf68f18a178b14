"""Arguments that have to be given and that no code reads are assumptions."""

import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest
from mistaken_code import adapted

from attentest.targets.adapt.assumptions.unread import unread_arguments

SOURCE = """
class Embedded:
    def forward(self, ids, segments):
        READ
        return ids


class Other:
    def forward(self, x, keep):
        return x + keep


class Same:
    def forward(self, x, keep):
        return x


def shifted(labels, pad_id, start_id):
    DOCUMENTATION
    labels[0] = FIRST
    return labels + pad_id


def apart(x, unread):
    return x


def renamed(state, handed):
    return state


class Model:
    def __init__(self):
        self.parts = Embedded(), Other(), Same()
        self.hooks = [renamed]

    def forward(self, ids, labels=None):
        return shifted(ids, 0, 1)
"""


def _unread(folder: Path, read: str = "pass", doc: str = "", first: str = "pad_id") -> list[str]:
    source = SOURCE.replace("READ", read).replace("DOCUMENTATION", repr(doc))
    path = folder / "own_unread.py"
    path.write_text(source.replace("FIRST", first))
    spec = spec_from_file_location(path.stem, path)
    assert spec
    assert spec.loader
    home = sys.modules[path.stem] = module_from_spec(spec)
    spec.loader.exec_module(home)
    try:
        return unread_arguments(home.Model)
    finally:
        del sys.modules[path.stem]


def test_arguments_that_no_code_reads_are_named_in_all_that_a_class_calls(tmp_path: Path) -> None:
    found = "; ".join(_unread(tmp_path))
    assert "segments is without effect on purpose: it has to be given to Embedded" in found
    assert "start_id is without effect on purpose: it has to be given to shifted" in found
    assert "keep" not in found
    assert "unread" not in found


def test_arguments_of_a_function_that_is_handed_on_are_not_named(tmp_path: Path) -> None:
    assert "handed" not in "; ".join(_unread(tmp_path))


@pytest.mark.parametrize("read", ["ids = ids + segments", "del segments", "ids += locals()['a']"])
def test_arguments_that_are_read_are_not_named(read: str, tmp_path: Path) -> None:
    assert _unread(tmp_path, read=read, first="start_id") == []


def test_arguments_that_are_documented_as_unused_are_not_named(tmp_path: Path) -> None:
    assert _unread(tmp_path, read="del segments", doc="start_id is ignored.") == []


def test_an_argument_that_no_code_reads_is_an_assumption_of_a_component(tmp_path: Path) -> None:
    code = """
from torch import nn


class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff):
        super().__init__()
        self.up, self.down = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)

    def forward(self, x, scale):
        return self.down(self.up(x).relu())
"""
    made = adapted(tmp_path, "FeedForward", code, given={"scale": 1.0})
    assert any("scale is without effect on purpose" in one for one in made.assumed)
