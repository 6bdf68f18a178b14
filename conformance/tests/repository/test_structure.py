"""The structure of the suite: its parts, the order of imports between them, and sizes."""

import ast
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest
from folders import REPOSITORY

SUITE = REPOSITORY / "conformance" / "attentest"

PARTS = (
    "results",
    "faults",
    "harness",
    "testing",
    "analysis",
    "targets",
    "studies",
    "judging",
    "suite",
    "views",
    "interfaces",
)
"""The parts, in order: a module imports from its own part or an earlier one."""

ROOT = {"__init__", "__main__", "version"}
"""The modules at the root of the package."""

LONGEST_CHAIN = 9
LONGEST_FILE = 400
MOST_MODULES = 22

PACKAGES = sorted(
    path.parent
    for pattern in ("conformance/*", "spec/*", "implementations/*/*")
    for path in REPOSITORY.glob(f"{pattern}/py.typed")
)


def module_name(path: Path, root: Path) -> str:
    """Return the dotted name of the module at `path` in the package at `root`."""
    parts = path.relative_to(root.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imported(path: Path, root: Path, modules: Mapping[str, Path]) -> Iterator[str]:
    """Yield the `modules` that the one at `path` imports, inside functions and for types too."""
    own = module_name(path, root)
    package = own if path.name == "__init__.py" else own.rpartition(".")[0]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (one.name for one in node.names if one.name in modules)
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) + 1 - node.level]
            base = ".".join([*(above if node.level else []), *filter(None, [node.module])])
            for one in node.names:
                full = f"{base}.{one.name}"
                if full in modules or base in modules:
                    yield full if full in modules else base


def graph(root: Path) -> dict[str, set[str]]:
    """Return which modules of the package at `root` each of them imports."""
    modules = {module_name(path, root): path for path in root.rglob("*.py")}
    return {
        name: {one for one in imported(path, root, modules) if one != name}
        for name, path in modules.items()
    }


def part_of(module: str) -> str:
    return module.partition(".")[2].partition(".")[0]


def against_the_order(imports: Mapping[str, set[str]]) -> list[str]:
    """Return every import of a later part."""
    place = {part: number for number, part in enumerate(PARTS)}
    return [
        f"{module} imports {other}"
        for module, others in imports.items()
        for other in sorted(others)
        if part_of(module) in place and place.get(part_of(other), -1) > place[part_of(module)]
    ]


@cache
def imports() -> Mapping[str, set[str]]:
    """Return the imports of the suite."""
    return graph(SUITE)


def test_parts_of_the_suite_are_the_listed_ones() -> None:
    folders = {path.parent.name for path in SUITE.glob("*/__init__.py")}
    assert folders == set(PARTS)
    assert {path.stem for path in SUITE.glob("*.py")} == ROOT


def test_imports_follow_the_order_of_the_parts() -> None:
    assert not against_the_order(imports())


@pytest.mark.parametrize(
    "line",
    [
        "from attentest.views.matrix import show",
        "def f():\n    from attentest.views import matrix",
        "if TYPE_CHECKING:\n    import attentest.views.matrix",
        "def f():\n    from ..views.matrix import show",
    ],
)
def test_order_of_the_parts_sees_imports_in_every_form(tmp_path: Path, line: str) -> None:
    root = tmp_path / "attentest"
    for folder in ("results", "views"):
        (root / folder).mkdir(parents=True)
        (root / folder / "__init__.py").touch()
    (root / "views" / "matrix.py").touch()
    (root / "results" / "verdict.py").write_text(line, encoding="utf-8")
    wrong = against_the_order(graph(root))
    assert wrong == ["attentest.results.verdict imports attentest.views.matrix"]


@pytest.mark.parametrize("root", PACKAGES, ids=lambda path: path.name)
def test_imports_have_no_circle(root: Path) -> None:
    try:
        tuple(TopologicalSorter(graph(root)).static_order())
    except CycleError as circle:
        pytest.fail(f"imports in a circle: {' -> '.join(circle.args[1])}")


def test_longest_chain_of_parts() -> None:
    boxes: dict[str, set[str]] = {}
    for module, others in imports().items():
        own = part_of(module) or "attentest"
        boxes.setdefault(own, set()).update({part_of(one) or "attentest" for one in others} - {own})
    boxes["__main__"] |= boxes.pop("attentest")  # the lazy public API stands above all parts
    length: dict[str, int] = {}
    for box in TopologicalSorter(boxes).static_order():
        length[box] = 1 + max((length[one] for one in boxes.get(box, ())), default=0)
    assert max(length.values()) <= LONGEST_CHAIN, length


@pytest.mark.parametrize("root", PACKAGES, ids=lambda path: path.name)
def test_files_are_short(root: Path) -> None:
    long = {
        str(path.relative_to(root)): lines
        for path in root.rglob("*")
        if path.suffix in {".py", ".js", ".css", ".html"} and path.name != "model.py"
        if (lines := len(path.read_text(encoding="utf-8").splitlines())) > LONGEST_FILE
    }
    assert not long


def test_folders_of_the_suite_hold_few_modules() -> None:
    folders = {path.parent for path in SUITE.rglob("*.py")}
    large = {
        str(one): count for one in folders if (count := len([*one.glob("*.py")])) > MOST_MODULES
    }
    assert not large


def test_every_part_has_its_tests() -> None:
    tests = REPOSITORY / "conformance" / "tests"
    lacking = [
        part for part in PARTS if part != "suite" and not [*tests.glob(f"{part}/**/test_*.py")]
    ]
    assert not lacking


@pytest.mark.parametrize("tests", [one.parent / "tests" for one in PACKAGES], ids=str)
def test_names_of_test_files_are_unique(tests: Path) -> None:
    # pytest imports the files of folders that are no packages by their names alone.
    names = Counter(path.name for path in tests.rglob("test_*.py"))
    assert not [name for name, count in names.items() if count > 1]
