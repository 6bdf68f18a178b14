"""`attentest new`: the folder it writes, and what its first run says."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from attentest.interfaces.cli.main import main
from attentest.judging.run import run
from attentest.results.plan import Plan
from attentest_spec import registry
from attentest_spec.clauses import clauses

FILES = {
    "README.md",
    "pyproject.toml",
    "attentest_my_own/__init__.py",
    "attentest_my_own/backend.py",
    "attentest_my_own/model.py",
    "attentest_my_own/py.typed",
}


def new(*words: str) -> Result:
    return CliRunner().invoke(main, ["new", *words])


def files(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def written(tmp_path: Path) -> Path:
    result = new("my-own", "--into", str(tmp_path))
    assert result.exit_code == 0, result.output
    return tmp_path / "my-own"


def test_the_folder_is_complete_and_bears_its_name(written: Path) -> None:
    assert files(written) == FILES
    project = tomllib.loads((written / "pyproject.toml").read_text(encoding="utf-8"))
    assert project["project"]["name"] == "attentest-my-own"
    announced = project["project"]["entry-points"]["attentest.backends"]
    assert announced == {"my-own": "attentest_my_own.backend:backend"}
    assert (written / "README.md").read_text(encoding="utf-8").startswith("# attentest-my-own\n")
    for path in written.rglob("*.*"):
        assert "newcomer" not in path.read_text(encoding="utf-8")


def test_the_next_commands_are_printed(tmp_path: Path) -> None:
    lines = new("mine", "--into", str(tmp_path)).output.splitlines()
    assert [line.split()[0] for line in lines[-3:]] == ["cd", "attentest", "pytest"]


def test_existing_files_are_never_overwritten(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("three years of work", encoding="utf-8")
    result = new("mine", "--into", str(tmp_path))
    assert result.exit_code == 2
    assert "exists and was left as it is" in result.output
    assert files(tmp_path) == {"mine/thesis.txt"}


@pytest.mark.parametrize("name", ["", "Mine", "2nd", "a b", "../mine", "mine_", "my--own", "größe"])
def test_a_name_that_cannot_be_is_refused(tmp_path: Path, name: str) -> None:
    result = new("--into", str(tmp_path), "--", name)
    assert result.exit_code == 2
    assert "cannot be the name" in result.output
    assert not files(tmp_path)


def test_a_name_that_is_taken_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "names", lambda: ["my_own"])
    result = new("my-own", "--into", str(tmp_path))
    assert result.exit_code == 2
    assert "installed already" in result.output
    taken = new("spec", "--into", str(tmp_path))  # attentest_spec
    assert taken.exit_code == 2
    assert "can be imported already" in taken.output
    assert not files(tmp_path)


def test_a_place_that_is_not_there_is_refused(tmp_path: Path) -> None:
    assert new("mine", "--into", str(tmp_path / "nosuch")).exit_code == 2


def ran(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", *words],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def named(folder: Path) -> tuple[list[str], list[str]]:
    """Return the parts that are to be written, and the clauses that their messages lead to."""
    text = (folder / "attentest_my_own" / "model.py").read_text(encoding="utf-8")
    parts = re.findall(r"^(?:def|class) (\w+)", text, re.MULTILINE)
    return parts, re.findall(r"attentest explain ([\w.-]+)", text)


def test_every_part_leads_to_a_clause(written: Path) -> None:
    parts, slugs = named(written)
    assert len(slugs) == len(parts)
    assert not set(slugs) - set(clauses())


@pytest.mark.proof
def test_the_first_run_fails_and_leads_the_way(
    written: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(written)
    target, clause = "attentest_my_own.backend:backend", "attention.formula"
    result = CliRunner().invoke(main, ["run", target, "--clause", clause, "--no-shrink"])
    assert result.exit_code == 1, result.output
    said = " ".join(result.output.split())
    assert "Write attention: softmax(query key^T / sqrt(E)) value" in said


@pytest.mark.proof
def test_every_part_that_is_to_be_written_says_so(
    written: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(written)
    parts, slugs = named(written)
    plan = Plan(tuple(slugs), shrink=False, diagnose=False)
    (judged,) = run(["attentest_my_own.backend:backend"], plan)
    assert {one.status for one in judged.verdicts} == {"error"}
    messages = "\n".join(one.message for one in judged.verdicts)
    assert set(re.findall(r"Write (\w+):", messages)) == set(parts)


@pytest.mark.proof
def test_pytest_judges_the_folder_without_an_installation(written: Path) -> None:
    result = ran(written, "pytest", "-q", "-x", "-k", "attention.one-key", "-p", "no:cacheprovider")
    assert result.returncode == 1, result.stdout + result.stderr
    assert "FAILED attentest::attention.one-key[attentest_my_own.backend:backend]" in result.stdout
    assert "Write attention: " in " ".join(result.stdout.split())
