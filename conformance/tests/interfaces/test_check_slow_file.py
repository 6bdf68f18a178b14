"""`attentest check FILE.py` of a file that takes too long to read."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from attentest.harness.errors import ProcessFailure
from attentest.interfaces import files
from attentest.interfaces.cli.main import main


@pytest.mark.parametrize(
    ("status", "why", "advice"),
    [
        ("timeout", "no answer within 120 seconds", "What it runs where"),
        ("crash", "its process used 4.1 GiB", "Name them one by one"),
    ],
)
def test_a_file_whose_members_cannot_be_listed_is_not_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, status: str, why: str, advice: str
):
    def hangs(*_: object) -> None:
        raise ProcessFailure(status, why)

    path = tmp_path / "own.py"
    path.write_text("def attention(query, key, value): ...\n", encoding="utf-8")
    monkeypatch.setattr(files, "remote_members", hangs)
    result = CliRunner().invoke(main, ["check", str(path)])
    assert result.exit_code == 3, result.output
    said = " ".join(result.output.split())
    assert f"could not be listed: {why}. {advice}" in said
