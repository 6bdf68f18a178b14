"""Scores the tests of the oracles and of the checks' helpers by mutation, with mutmut.

Called as `python .ci/mutants.py FOLDER [MODULE ..]` inside an env that has both packages, mutmut
and pytest; all that is mutated and run is a copy in FOLDER. What is mutated, what has to kill it
and which mutants cannot be killed is said in mutants.toml. Fails where a mutant survives that is
not listed there, and where a listed one is killed or no longer made.
"""

import re
import shutil
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Collection, Iterator
from configparser import ConfigParser
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
MUTMUT = [sys.executable, "-m", "mutmut"]
# As in the repository's own pytest settings, warnings are errors; the plugin would judge backends.
PYTEST = ["-W", "error", "-p", "no:cacheprovider", "-p", "no:attentest"]
KILLED = {"killed", "timeout"}

Wing = dict[str, Any]


def prepared(folder: Path, wing: Wing, modules: Collection[str]) -> Path:
    """Copy the package and its tests into an emptied `folder`, with the tool's settings."""
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "tests").mkdir(parents=True)
    package, tests = ROOT / wing["package"], ROOT / wing["tests"]
    shutil.copytree(package, folder / package.name, ignore=shutil.ignore_patterns("__pycache__"))
    for module in modules:
        uncover(folder / package.name / file_of(module))
    for pattern in wing["files"]:
        for path in tests.glob(pattern):
            if path.name not in wing.get("omitted", []):
                shutil.copy(path, folder / "tests")
    lists = {
        "source_paths": [package.name],
        "only_mutate": [f"{package.name}/{file_of(module)}" for module in modules],
        "do_not_mutate_patterns": wing.get("never_mutated", []),
        "pytest_add_cli_args": PYTEST,
        "pytest_add_cli_args_test_selection": ["tests"],
    }
    settings = ConfigParser(interpolation=None)
    # One a line, the first line empty; the tool reads an empty list as one empty pattern.
    settings["mutmut"] = {name: "\n".join(["", *words]) for name, words in lists.items() if words}
    with (folder / "setup.cfg").open("w", encoding="utf-8") as file:
        settings.write(file)
    return folder


def file_of(module: str) -> str:
    """Return the file of a dotted `module`, relative to its package."""
    return f"{module.replace('.', '/')}.py"


def uncover(module: Path) -> None:
    """Apply the decorators of functions at the end of the copy `module`, where the tool is blind.

    It mutates no decorated function; one that is wrapped by its name afterwards is like any other.
    """
    text = module.read_text(encoding="utf-8")
    wrapped = re.findall(r"^@(\w+)\ndef (\w+)", text, flags=re.MULTILINE)
    bare = re.sub(r"^@\w+\n(?=def )", "", text, flags=re.MULTILINE)
    ends = [f"{name} = {decorator}({name})\n" for decorator, name in wrapped]
    module.write_text("\n".join([bare, *ends]), encoding="utf-8")


def outcomes(folder: Path, package: str) -> dict[str, str]:
    """Run the tool in `folder`; return how each mutant ended, by "module.function: was -> is"."""
    subprocess.run([*MUTMUT, "run", "--max-children", "1"], cwd=folder, check=True)
    printed = asked(folder, "results", "--all", "true")
    found = {}
    for line in filter(None, map(str.strip, printed.splitlines())):
        name, _, status = line.rpartition(": ")
        shown = name if status in KILLED else change(asked(folder, "show", name))
        found[f"{place(name.removeprefix(f'{package}.'))}: {shown}"] = status
    return found


def place(name: str) -> str:
    """Return where the tool's mutant `name` is: "package.module.function", or "..Class.method"."""
    module, _, function = re.split(r"\.x(_|ǁ)", name.partition("__mutmut_")[0], maxsplit=1)
    return f"{module}.{function.replace('ǁ', '.')}"


def asked(folder: Path, *command: str) -> str:
    """Return what the tool prints."""
    ran = subprocess.run(
        [*MUTMUT, *command], cwd=folder, check=True, capture_output=True, text=True
    )
    return ran.stdout


def change(diff: str) -> str:
    """Return the changed lines of `diff` as "was -> is"."""
    body = [line for line in diff.splitlines() if not line.startswith(("---", "+++"))]
    was, now = (
        " ".join(line[1:].strip() for line in body if line.startswith(sign)) for sign in "-+"
    )
    return f"{was} -> {now}"


def module_of(name: str, modules: Collection[str]) -> str:
    """Return which of `modules` the mutant `name` is of."""
    return next(one for one in modules if name.startswith(f"{one}."))


def table(found: dict[str, str], modules: Collection[str]) -> Iterator[str]:
    """Yield a line for every one of `modules`: mutants, killed ones, survivors."""
    yield f"{'module':24}{'mutants':>9}{'killed':>9}{'left':>6}"
    made, killed = Counter[str](), Counter[str]()
    for name, status in found.items():
        for row in (module_of(name, modules), "all"):
            made[row] += 1
            killed[row] += status in KILLED
    for row in sorted(made, key=lambda one: (one == "all", one)):
        yield f"{row:24}{made[row]:>9}{killed[row]:>9}{made[row] - killed[row]:>6}"


def complaints(found: dict[str, str], listed: Collection[str]) -> Iterator[str]:
    """Yield what is in `found` and not listed, and what is listed and not found."""
    left = {name for name, status in found.items() if status not in KILLED}
    for name in sorted(left - set(listed)):
        yield f"survives, and has to be killed by a test or listed in mutants.toml: {name}"
    for name in sorted(set(listed) - left):
        yield f"is listed in mutants.toml, and no longer made or killed: {name}"


def main(folder: Path, only: Collection[str]) -> int:
    """Score both wings, or the modules named in `only`; return the exit status."""
    settings = tomllib.loads((ROOT / ".ci" / "mutants.toml").read_text(encoding="utf-8"))
    found: dict[str, str] = {}
    mutated = [one for wing in settings["wings"].values() for one in wing["modules"]]
    for name, wing in settings["wings"].items():
        modules = [one for one in wing["modules"] if not only or one in only]
        if modules:
            place = prepared(folder / name, wing, modules)
            found |= outcomes(place, Path(wing["package"]).name)
    judged = {module_of(name, mutated) for name in found}
    listed = [one for entry in settings["equivalent"] for one in entry["mutants"]]
    listed = [one for one in listed if not only or module_of(one, mutated) in judged]
    print("\n".join(table(found, mutated)))
    wrong = list(complaints(found, listed))
    print("\n".join(wrong) or f"All survivors are listed, with reasons: {len(listed)}.")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).resolve(), sys.argv[2:]))
