"""`attentest check FILE.py` of a file that takes too long to read."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from attentest.harness.errors import ProcessFailure
from attentest.interfaces import files
from attentest.interfaces.cli.main import main


def test_a_file_whose_members_take_too_long_is_not_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    def hangs(*_: object) -> None:
        raise ProcessFailure("timeout", "no answer within 120 seconds")

    path = tmp_path / "own.py"
    path.write_text("def attention(query, key, value): ...\n", encoding="utf-8")
    monkeypatch.setattr(files, "remote_members", hangs)
    result = CliRunner().invoke(main, ["check", str(path)])
    assert result.exit_code == 3, result.output
    said = " ".join(result.output.split())
    assert "could not be listed: no answer within 120 seconds. What it runs" in said
