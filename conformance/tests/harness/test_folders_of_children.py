"""Child processes: files with names of standard modules are found, and torch compiles nothing."""

from pathlib import Path

import pytest

from attentest.harness.process import Child, Isolation


def test_child_starts_where_files_have_the_names_of_standard_modules(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("typing", "token", "types"):
        (tmp_path / f"{name}.py").write_text("raise ImportError('not the standard module')\n")
    (tmp_path / "own_answers.py").write_text("METHODS = {'echo': lambda *, value: value}\n")
    monkeypatch.chdir(tmp_path)
    with Child("own_answers", Isolation(), {"SETTING_OF_ITS_OWN": "1"}) as child:
        assert child.call("echo", value=7) == 7


COMPILED = """
import sys

import torch


@torch.compile
def doubled(x):
    return 2 * x


def _imported():
    assert doubled(torch.ones(3)).sum() == 6
    return [one for one in ("torch._inductor.compile_fx",) if one in sys.modules]


METHODS = {"imported": _imported}
"""


def test_child_does_not_compile_what_torch_is_asked_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "compiled_answers.py").write_text(COMPILED)
    monkeypatch.chdir(tmp_path)
    with Child("compiled_answers", Isolation(), {"SETTING_OF_ITS_OWN": "1"}) as child:
        assert child.call("imported") == []
