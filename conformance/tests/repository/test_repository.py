"""The shape of the repository: the one rule, what every package has, and what a newcomer gets."""

import ast
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from folders import REPOSITORY
from proof import share

import attentest
import attentest_spec
from attentest.targets import scaffold
from attentest_spec.components import CHAPTERS

SPEC = REPOSITORY / "spec" / "attentest_spec"
SUITE = REPOSITORY / "conformance" / "attentest"
FOLDERS = sorted(path.parent for path in REPOSITORY.glob("implementations/*/pyproject.toml"))
PACKAGES = [REPOSITORY / "spec", REPOSITORY / "conformance", *FOLDERS]
SKIPPED = {".git", ".tox", ".venv", "__pycache__", "_build", "generated", "build", "dist"}

if not FOLDERS:
    raise RuntimeError(
        f"There is no implementation below {REPOSITORY}, and these tests would say nothing."
    )


def project(folder: Path) -> dict[str, Any]:
    told: dict[str, Any] = tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))
    return told


def package(folder: Path) -> Path:
    (found,) = project(folder)["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
    return folder / str(found)


def backends(folder: Path) -> dict[str, str]:
    announced: dict[str, str] = project(folder)["project"]["entry-points"]["attentest.backends"]
    return announced


NAMES = {name: folder for folder in FOLDERS for name in backends(folder)}
IMPLEMENTATIONS = {package(folder).name for folder in FOLDERS}


def named(paths: list[Path]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("folder", paths, ids=lambda path: path.name)


# The one rule: implementations -> spec <- conformance ---------------------------------------------


@cache
def imports(path: Path) -> list[tuple[str, int]]:
    """Return the first segment of every module that a file imports, with the line."""
    found = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        match node:
            case ast.Import(names=aliases):
                modules = [alias.name for alias in aliases]
            case ast.ImportFrom(module=str(module), level=0):
                modules = [module]
            case ast.Call(
                func=ast.Name(id="import_module" | "__import__")
                | ast.Attribute(attr="import_module"),
                args=[ast.Constant(value=str(module)), *_],
            ):
                modules = [module]
            case _:
                continue
        found += [(module.partition(".")[0], node.lineno) for module in modules]
    return found


def offences(files: Iterator[Path], forbidden: set[str]) -> list[str]:
    return [
        f"{path.relative_to(REPOSITORY)}:{line} imports {module}"
        for path in files
        for module, line in imports(path)
        if module in forbidden
    ]


def test_imports_are_found_in_every_form(tmp_path: Path) -> None:
    file = tmp_path / "forms.py"
    file.write_text(
        "import a.b, c\nfrom d.e import f\nfrom . import g\n"
        "import importlib\ndef h():\n    from i import j\n    importlib.import_module('k.l')\n",
        encoding="utf-8",
    )
    assert [module for module, _ in imports(file)] == ["a", "c", "d", "importlib", "i", "k"]


def test_spec_imports_neither_suite_nor_implementations() -> None:
    assert not offences(SPEC.rglob("*.py"), {"attentest"} | IMPLEMENTATIONS)


def test_spec_needs_no_framework_outside_its_adapters() -> None:
    adapters = {SPEC / "torch", SPEC / "jax"}
    files = (path for path in SPEC.rglob("*.py") if path.parent not in adapters)
    assert not offences(files, {"torch", "jax", "tensorflow", "flax", "mlx", "keras"})


@pytest.mark.parametrize("framework", ["torch", "jax"])
def test_adapter_needs_its_own_framework_alone(framework: str) -> None:
    others = {"torch", "jax", "tensorflow", "flax", "mlx", "keras"} - {framework}
    of_jax = {SPEC / "torch" / name for name in ("arrays.py", "array_constructors.py")}
    files = set((SPEC / framework).rglob("*.py")) - of_jax
    assert files
    assert not offences(iter(files), others)


def test_importing_the_spec_and_the_plugin_loads_no_framework() -> None:
    code = (
        "import sys, attentest_spec, attentest_spec.oracles, attentest.interfaces.pytest.plugin; "
        "sys.exit(bool({'torch', 'jax'} & set(sys.modules)))"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_suite_imports_no_implementation() -> None:
    assert not offences(SUITE.rglob("*.py"), IMPLEMENTATIONS)


@named(FOLDERS)
def test_implementation_imports_no_suite_and_no_other_implementation(folder: Path) -> None:
    others = IMPLEMENTATIONS - {package(folder).name}
    assert not offences(package(folder).rglob("*.py"), {"attentest"} | others)


@named(FOLDERS)
def test_model_knows_nothing_of_attentest(folder: Path) -> None:
    model = package(folder) / "model.py"
    lent = "library" in project(folder)["project"].get("optional-dependencies", {})
    assert model.is_file() or lent  # where the model is a library's, there is none of its own
    files = iter([model] if model.is_file() else [])
    assert not offences(files, {"attentest", "attentest_spec"})


@named(FOLDERS)
def test_adapter_of_a_library_is_short(folder: Path) -> None:
    if "library" in project(folder)["project"].get("optional-dependencies", {}):
        text = (package(folder) / "backend.py").read_text(encoding="utf-8")
        assert len(text.splitlines()) <= 120


# Nobody names an implementation but itself --------------------------------------------------------


@cache
def texts() -> dict[Path, str]:
    """Return the files that are read by people or tools, without what the matrix of README names.

    They are read once for all names.
    """
    found = {}
    for top, folders, files in os.walk(REPOSITORY):
        hidden = {name for name in folders if name.startswith(".") and name != ".ci"}
        folders[:] = sorted(set(folders) - SKIPPED - hidden)
        for name in files:
            if Path(name).suffix in {".py", ".md", ".toml", ".ini", ".txt", ".json", ".yaml", ""}:
                text = (Path(top) / name).read_text(encoding="utf-8")
                matrix = "<!-- matrix:begin -->.*<!-- matrix:end -->"
                found[Path(top) / name] = re.sub(matrix, "", text, flags=re.DOTALL)
    return found


def mentions(name: str) -> re.Pattern[str]:
    """Return what finds `name` used as a name: some names are English words as well."""
    word, package_word = re.escape(name), "[_-]".join(map(re.escape, re.split("[_-]", name)))
    return re.compile(
        rf"attentest[_-]{package_word}\b|implementations/{word}\b|([\"'`]){word}\1"
        rf"|(?:\brun|\bcheck|--backend|tox -e) {word}\b"
    )


def test_mentions_are_told_from_words() -> None:
    found = mentions("torch_nn")
    assert all(
        found.search(text)
        for text in ("attentest-torch-nn", "attentest_torch_nn", '"torch_nn"', "run torch_nn")
    )
    assert not mentions("scratch").search("written from scratch, in a scratch file: run scratchy")


@share(4)
@pytest.mark.parametrize("name", sorted(NAMES))
def test_no_file_outside_its_folder_names_an_implementation(name: str) -> None:
    own = (NAMES[name], REPOSITORY / "docs", REPOSITORY / "CHANGELOG.md", Path(__file__))
    first = re.split("[_-]", name)[0]  # a search for words takes a hundred times as long
    found = [
        f"{path.relative_to(REPOSITORY)}: {hit[0]}"
        for path, text in texts().items()
        if first in text and not any(path == place or place in path.parents for place in own)
        for hit in mentions(name).finditer(text)
    ]
    assert not found


# What every package has ---------------------------------------------------------------------------


@named(PACKAGES)
def test_package_is_complete(folder: Path) -> None:
    told = project(folder)["project"]
    assert (package(folder) / "py.typed").is_file()
    assert (folder / told["readme"]).read_text(encoding="utf-8").startswith(f"# {told['name']}\n")
    assert told["license"] == "MIT"
    assert told["requires-python"] == ">=3.11"
    assert told["description"]


@named(PACKAGES)
def test_every_dependency_has_a_lower_bound(folder: Path) -> None:
    told = project(folder)
    needed = [*told["project"].get("dependencies", []), *told["build-system"]["requires"]]
    for extra in told["project"].get("optional-dependencies", {}).values():
        needed += extra
    assert needed
    assert not [one for one in needed if ">=" not in one]


@named(PACKAGES)
def test_versions_agree(folder: Path) -> None:
    version = project(folder)["project"]["version"]
    assert version == attentest.__version__ == attentest_spec.__version__
    changelog = (REPOSITORY / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.search(rf"^## \[{re.escape(version)}\] - ", changelog, re.MULTILINE)


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_chapter_is_the_address_in_every_wing(chapter: str) -> None:
    wings = (SPEC / f"{chapter}.md", SPEC / f"{chapter}.py")
    assert not [str(path.relative_to(REPOSITORY)) for path in wings if not path.is_file()]
    checks = SUITE / "suite" / f"test_{chapter}"
    assert checks.with_suffix(".py").is_file() != (checks / "__init__.py").is_file()
    index = (REPOSITORY / "docs" / "contents.txt").read_text(encoding="utf-8")
    assert f"generated/chapters/{chapter}\n" in index


# The commands of the README -----------------------------------------------------------------------


def test_continuous_integration_calls_the_second_command_of_the_readme() -> None:
    readme = (REPOSITORY / "README.md").read_text(encoding="utf-8")
    commands = re.findall(r"^pip install tox .*$", readme, re.MULTILINE)
    assert commands == ["pip install tox && tox -e matrix", "pip install tox && tox -p auto"]
    script = REPOSITORY / ".ci" / "run"
    lines = [line.strip() for line in script.read_text(encoding="utf-8").splitlines()]
    assert lines.count(commands[1]) == 1
    assert "set -euo pipefail" in lines
    assert os.access(script, os.X_OK)
    subprocess.run(["bash", "-n", str(script)], check=True)


def test_readme_shows_a_matrix() -> None:
    readme = (REPOSITORY / "README.md").read_text(encoding="utf-8")
    block = re.search("<!-- matrix:begin -->(.*)<!-- matrix:end -->", readme, re.DOTALL)
    assert block
    assert re.search(r"^conforms +\d+/\d+", block[1], re.MULTILINE), "run tox -e readme"


def test_readme_links_lead_somewhere() -> None:
    for page in (REPOSITORY / "README.md", REPOSITORY / "CONTRIBUTING.md"):
        links = re.findall(r"\]\(([^):#]+)\)", page.read_text(encoding="utf-8"))
        assert links
        assert not [link for link in links if not (REPOSITORY / link).exists()]


# A new folder -------------------------------------------------------------------------------------


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
