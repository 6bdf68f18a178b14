"""The list of mutants that no test can kill: it names what is there, and the script holds it."""

import importlib.util
import tomllib
from types import ModuleType

import pytest
from folders import REPOSITORY

CI = REPOSITORY / ".ci"
TOLD = tomllib.loads((CI / "mutants.toml").read_text(encoding="utf-8"))
LISTED = [one for entry in TOLD["equivalent"] for one in entry["mutants"]]


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("mutants", CI / "mutants.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def squeezed(text: str) -> str:
    return "".join(text.split())


def test_every_listed_mutant_names_a_line_that_is_there() -> None:
    assert LISTED
    assert len(set(LISTED)) == len(LISTED)
    for wing in TOLD["wings"].values():
        for module in wing["modules"]:
            source = CI.parent / wing["package"] / f"{module.replace('.', '/')}.py"
            lines = squeezed(source.read_text(encoding="utf-8"))
            for mutant in [one for one in LISTED if one.startswith(f"{module}.")]:
                was, _, _ = mutant.partition(": ")[2].partition(" -> ")
                assert squeezed(was) in lines, mutant


def test_every_listed_mutant_is_of_a_module_that_is_mutated() -> None:
    modules = {one for wing in TOLD["wings"].values() for one in wing["modules"]}
    assert all(any(one.startswith(f"{module}.") for module in modules) for one in LISTED)
    assert all(entry["reason"].endswith(".") for entry in TOLD["equivalent"])


def test_tests_of_every_wing_are_found() -> None:
    for wing in TOLD["wings"].values():
        assert (CI.parent / wing["package"]).is_dir()
        for pattern in wing["files"]:
            assert list((CI.parent / wing["tests"]).glob(pattern)), pattern


def test_a_diff_is_told_as_one_line(script: ModuleType) -> None:
    diff = (
        "--- a.py\n+++ a.py\n@@ -1 +1 @@\n def f():\n-    return f(\n-        1)\n+    return 2\n"
    )
    assert script.change(diff) == "return f( 1) -> return 2"


@pytest.mark.parametrize(
    ("name", "place"),
    [
        ("masks.x_padding_mask__mutmut_3", "masks.padding_mask"),
        ("linear.x__private__mutmut_1", "linear._private"),
        ("mapping.xǁPlaceǁ_slice__mutmut_12", "mapping.Place._slice"),
        ("choices.values.xǁChoicesǁof__mutmut_1", "choices.values.Choices.of"),
    ],
)
def test_place_names_module_and_function_of_a_mutant(
    script: ModuleType, name: str, place: str
) -> None:
    assert script.place(name) == place


def test_a_survivor_has_to_be_listed_and_the_list_may_not_go_stale(script: ModuleType) -> None:
    found = {"a.f: 1 -> 2": "survived", "a.g: x": "killed", "b.f: 3 -> 4": "no tests"}
    assert not list(script.complaints(found, ["a.f: 1 -> 2", "b.f: 3 -> 4"]))
    (unlisted,) = script.complaints(found, ["a.f: 1 -> 2"])
    assert unlisted.startswith("survives")
    assert unlisted.endswith(": b.f: 3 -> 4")
    (stale,) = script.complaints(found, ["a.f: 1 -> 2", "b.f: 3 -> 4", "c.f: 5 -> 6"])
    assert stale.startswith("is listed")
    assert stale.endswith(": c.f: 5 -> 6")


def test_the_table_counts_by_module(script: ModuleType) -> None:
    found = {"b.f: 3 -> 4": "no tests", "a.f: 1 -> 2": "survived", "a.g: x": "timeout"}
    rows = [line.split() for line in script.table(found, ["a", "b"])]
    assert rows[1:] == [["a", "2", "1", "1"], ["b", "1", "0", "1"], ["all", "3", "1", "2"]]
