"""The working directory of a child process, whose files may have names of standard modules."""

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
