"""The shape of the repository: the one rule, and what every package has."""

import ast
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from folders import REPOSITORY

import attentest
import attentest_spec
from attentest_spec.components import CHAPTERS
from implementations import FOLDERS, SKIPPED, backends, package, project

SPEC = REPOSITORY / "spec" / "attentest_spec"
SUITE = REPOSITORY / "conformance" / "attentest"
PACKAGES = [REPOSITORY / "spec", REPOSITORY / "conformance", *FOLDERS]
NAMES = {name: folder for folder in FOLDERS for name in backends(folder)}
TOP_LEVEL = {"spec", "implementations", "conformance", "docs", "tox.ini", "toxfile.py"} | {
    *("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "LICENSE", "pyproject.toml"),
    "constraints.txt",
}
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
    names = ("arrays.py", "array_constructors.py", "array_variables.py")
    of_jax = {SPEC / "torch" / name for name in names}
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


def test_top_level_holds_the_listed_entries() -> None:
    tracked = subprocess.run(["git", "ls-files"], cwd=REPOSITORY, capture_output=True, text=True)
    if tracked.returncode:
        pytest.skip("this is no clone: nothing lists the files that belong to the repository")
    entries = {path.partition("/")[0] for path in tracked.stdout.splitlines()}
    assert {one for one in entries if not one.startswith(".")} == TOP_LEVEL


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
