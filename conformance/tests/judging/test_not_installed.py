"""A backend whose library is not installed: shown as that, and never as failed."""

import json
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from folders import SUPPORT
from proof import item, share

from attentest.interfaces.cli.main import main
from attentest.results.stream import schema
from attentest_spec import registry

pytest_plugins = ["pytester"]
MINIATURES = SUPPORT / "miniatures.py"
COMMAND = 'pip install "lent-adapter[library]"'
CLAUSE = ("--clause", "attention.one-key")


def distribution(folder: Path, name: str, needs: str, entry: str) -> None:
    info = folder / f"{name.replace('-', '_')}-1.0.dist-info"
    info.mkdir()
    metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n{needs}"
    (info / "METADATA").write_text(metadata, encoding="utf-8")
    announced = f"[{registry.GROUP}]\n{entry}\n"
    (info / "entry_points.txt").write_text(announced, encoding="utf-8")


@pytest.fixture(autouse=True)
def announced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Announce a sound backend and one that lacks its library, to child processes too."""
    (tmp_path / "zz_lent.py").write_text("import zz_absent_library\n")
    (tmp_path / "zz_there.py").write_text(MINIATURES.read_text(encoding="utf-8"))
    lacking = "Provides-Extra: library\nRequires-Dist: zz-absent-library>=2; extra == 'library'\n"
    distribution(tmp_path, "lent-adapter", lacking, "zz-lent = zz_lent:backend")
    distribution(tmp_path, "sound-adapter", "", "zz-there = zz_there:good")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=":")
    monkeypatch.setattr(registry, "names", lambda: ["zz-lent", "zz-there"])
    for name in ("zz_lent", "zz_there"):
        monkeypatch.delitem(sys.modules, name, raising=False)


def ran(*words: str) -> Result:
    return CliRunner().invoke(main, list(words), env={"COLUMNS": "100"})


@pytest.mark.proof
def test_a_run_of_all_leaves_it_out_with_one_line_and_conforms(tmp_path: Path) -> None:
    stream = tmp_path / "stream.jsonl"
    result = ran("run", *CLAUSE, "--json", str(stream))
    assert result.exit_code == 0, result.output
    assert result.output.count("zz-lent") == 1
    assert f"\nzz-lent: not installed; {COMMAND}\n" in result.output
    assert "zz-there: 1 of 1 judged clauses conform" in result.output
    told = [json.loads(line) for line in stream.read_text(encoding="utf-8").splitlines()]
    assert told[1] == {"type": "not-installed", "backend": "zz-lent", "install": COMMAND}
    assert told[-1]["exit"] == 0
    assert set(told[-1]["totals"]) == {"zz-there"}


def test_the_line_of_the_stream_is_in_the_schema() -> None:
    jsonschema = pytest.importorskip("jsonschema")
    line = {"type": "not-installed", "backend": "zz-lent", "install": COMMAND}
    jsonschema.Draft202012Validator(schema()).validate(line)


def test_with_nothing_else_installed_a_run_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "names", lambda: ["zz-lent"])
    result = ran("run", *CLAUSE)
    assert result.exit_code == 2
    assert "No backend is installed" in result.output


@share(3, rest=1)
@pytest.mark.parametrize(
    "words",
    [
        item(words, name=" ".join(words), unit=words[0] in ("run", "identify"))
        for words in (
            ("run", "zz-lent", *CLAUSE),
            ("run", "zz-lent", "zz-there", *CLAUSE),
            ("check", "zz-lent", *CLAUSE),
            ("identify", "zz-lent"),
            ("compare", "zz-there", "zz-lent"),
            ("trace", "zz-lent"),
        )
    ],
)
def test_named_it_cannot_be_loaded(words: tuple[str, ...]) -> None:
    result = ran(*words)
    assert result.exit_code == 3, result.output
    assert "The backend zz-lent needs zz-absent-library, which is not installed" in result.output
    assert COMMAND in result.output


def test_the_list_says_so() -> None:
    listed = ran("list", "backends").output
    assert f"not installed; {COMMAND}" in " ".join(listed.split())
    assert "NOT LOADED" not in listed


def test_pytest_refuses_its_name_in_one_line(pytester: pytest.Pytester) -> None:
    pytester.makeini("[pytest]")
    result = pytester.runpytest_inprocess("--backend", "zz-lent")
    assert result.ret == 4
    result.stderr.fnmatch_lines(
        [f"ERROR: The backend zz-lent is not installed; install it: {COMMAND}".replace("[", "[[]")]
    )


def test_pytest_judges_all_that_are_installed(pytester: pytest.Pytester) -> None:
    pytester.makeini("[pytest]")
    words = ("--pyargs", "attentest.suite.test_attention", "-k", "test_one_key", "-v")
    result = pytester.runpytest_inprocess(*words, "-p", "no:cacheprovider")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["*test_one_key*zz-there*"])
