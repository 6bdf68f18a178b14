"""A new folder below implementations has its env, its page and its column, with no other change."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from folders import REPOSITORY

from attentest.targets import scaffold
from implementations import FOLDERS, SKIPPED, backends


@pytest.fixture(scope="module")
def grown(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy of the repository in which `attentest new` has added an implementation."""
    tree = tmp_path_factory.mktemp("grown")
    kept = ("tox.ini", "toxfile.py", "constraints.txt", "pyproject.toml")
    for name in kept:
        shutil.copy(REPOSITORY / name, tree)
    for name in ("spec", "docs", "implementations"):
        shutil.copytree(
            REPOSITORY / name, tree / name, ignore=shutil.ignore_patterns(*SKIPPED, ".*", "tests")
        )
    scaffold.write("newcomer", tree / "implementations")
    return tree


def clean_environment(**more: str) -> dict[str, str]:
    """Return the environment without what tox and its file set in it."""
    inherited = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("TOX_", "ATTENTEST_", "COV_"))
    }
    return {**inherited, **more}


def tox(tree: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tox", *arguments],
        cwd=tree,
        env=clean_environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_new_folder_gets_its_env(grown: Path) -> None:
    listed = tox(grown, "list", "--no-desc", "-q")
    assert listed.returncode == 0, listed.stderr
    assert {"newcomer", *(folder.name for folder in FOLDERS)} <= set(listed.stdout.split())
    told = tox(grown, "config", "-q", "-e", "newcomer,matrix", "-k", "deps", "commands")
    mine, everything = told.stdout.split("[testenv:matrix]")
    assert "attentest run newcomer" in mine
    assert f"-e {grown / 'implementations' / 'newcomer'}" in mine
    assert not [folder for folder in FOLDERS if f"implementations/{folder.name}" in mine]
    assert f"-e {grown / 'implementations' / 'newcomer'}" in everything


@pytest.mark.proof
def test_library_and_what_is_known_of_it_are_for_the_env_of_the_folder_alone(
    grown: Path, tmp_path: Path
) -> None:
    tree = shutil.copytree(grown, tmp_path / "tree")
    folder = tree / "implementations" / "newcomer"
    with (folder / "pyproject.toml").open("a", encoding="utf-8") as file:
        file.write('\n[project.optional-dependencies]\nlibrary = ["einops>=0.8"]\n')
        file.write("\n[tool.attentest]\neffort = 0.5\n")
    (folder / "deviations.toml").touch()
    first = next(one.name for one in FOLDERS if (one / "deviations.toml").exists())
    words = ("-q", "-e", f"newcomer,{first},matrix", "-k", "deps", "commands")
    settings = tox(tree, "config", *words).stdout
    mine, by_pytest, everything = re.split(rf"\[testenv:(?:{first}|matrix)\]", settings)
    assert f"-e {folder}[library]\n" in mine
    assert f"--deviations={folder}/deviations.toml" in mine
    assert "--effort 0.5" in mine
    assert "pytest -q" not in mine
    assert f"attentest_deviations={tree}/implementations/{first}/deviations.toml" in by_pytest
    assert f"-e {folder}\n" in everything
    assert "deviations" not in everything


def test_env_that_matches_no_folder_fails(grown: Path) -> None:
    assert tox(grown, "run", "-q", "-e", "newcome").returncode != 0


def test_new_folder_gets_its_page(
    grown: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", [str(grown / "docs" / "_ext"), *sys.path])
    import pages  # type: ignore[import-not-found]  # it stands in docs/_ext

    written = pages.write(grown, tmp_path)
    assert tmp_path / "implementations" / "newcomer.md" in written
    index = (tmp_path / "implementations" / "index.md").read_text(encoding="utf-8")
    assert "\nnewcomer\n" in index  # in the tree of contents
    page = (tmp_path / "implementations" / "newcomer.md").read_text(encoding="utf-8")
    assert "attentest_newcomer/model.py" in page


@pytest.mark.proof
def test_new_folder_gets_its_column(grown: Path, tmp_path: Path) -> None:
    # What an installation leaves behind, as far as the registry is concerned.
    entries = "".join(
        f"{name} = {value}\n"
        for name, value in backends(grown / "implementations" / "newcomer").items()
    )
    info = tmp_path / "attentest_newcomer-0.1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: attentest-newcomer\nVersion: 0.1.0\n", encoding="utf-8"
    )
    (info / "entry_points.txt").write_text(f"[attentest.backends]\n{entries}", encoding="utf-8")
    inherited = filter(None, [os.environ.get("PYTHONPATH")])
    folder = grown / "implementations" / "newcomer"
    places = os.pathsep.join([str(tmp_path), str(folder), *inherited])
    code = "from attentest.interfaces.cli.main import main; main()"
    ran = subprocess.run(
        [sys.executable, "-c", code, "run", "newcomer", "--clause", "layer_norm.shapes"],
        env=clean_environment(PYTHONPATH=places, COLUMNS="120"),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert re.match(r"clause +newcomer *\n", ran.stdout)
    assert "newcomer: 1 of 1 judged clauses conform" in ran.stdout
