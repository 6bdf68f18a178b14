"""Finds the implementations, so that a new folder is an env without an edit anywhere.

A folder whose package has the extra `library` gets it in its own env and nowhere else. Its
expected failures are listed in its deviations.toml, with their causes: these are searched again
only where the verdicts are to be written.

An env judges every clause by the command, with as many examples as its folder's pyproject.toml says
(all by default): fewer where these show every stored verdict, and all where verdicts are to be
written. By pytest, which judges by the same checks, it tries only a few clauses, of every chapter
in the first env; of the folders with expected failures, one is tried. It tries few examples of
each, except where failures are expected: these may need many.

tox.ini reads what is found from environment variables that are set here.
"""

import os
import tomllib
from pathlib import Path
from typing import Any

WRITTEN = os.environ.get("ATTENTEST_LEARNED") == "--write"
ROOT = Path(__file__).resolve().parent
FOLDERS = sorted(path.parent for path in ROOT.glob("implementations/*/pyproject.toml"))
PACKAGES = sorted(path.parent for path in ROOT.glob("implementations/*/*/py.typed"))


def metadata(folder: Path) -> dict[str, Any]:
    """Return the content of the folder's pyproject.toml."""
    return tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))


def project(folder: Path) -> dict[str, Any]:
    """Return what the folder's package says of itself."""
    table: dict[str, Any] = metadata(folder)["project"]
    return table


def extra(folder: Path) -> str:
    """Return the extra `library` of a folder that has it."""
    return "[library]" if "library" in project(folder).get("optional-dependencies", {}) else ""


def names(folder: Path, before: str = "") -> str:
    """Return the names of the folder's backends, `before` in front of each."""
    announced = project(folder)["entry-points"]["attentest.backends"]
    return " ".join(f"{before}{name}" for name in announced)


def declared(folder: Path, option: str) -> str:
    """Return the option that names the folder's deviation file, where it has one."""
    file = folder / "deviations.toml"
    return f"{option}{file}" if file.exists() else ""


def effort(folder: Path) -> str:
    """Return the option for few examples, "" for a folder that has a deviation file."""
    return "" if (folder / "deviations.toml").exists() else "--attentest-effort=0.1"


def undiagnosed(folder: Path) -> str:
    """Return the option for no likely causes, "" for a folder whose failures are not known."""
    return "--no-diagnose" if (folder / "deviations.toml").exists() and not WRITTEN else ""


def examples(folder: Path) -> str:
    """Return the option for the part of the examples that the folder is judged with."""
    part = metadata(folder).get("tool", {}).get("attentest", {}).get("effort", 1)
    return "" if WRITTEN or part == 1 else f"--effort {part}"


def families(folder: Path) -> str:
    """Return the command that judges the families that the folder finds in its library, if any."""
    if "attentest.families" not in project(folder)["entry-points"]:
        return ""
    mode = os.environ.get("ATTENTEST_LEARNED", "--check")
    return f"python {ROOT}/docs/families.py {mode} {folder.name}"


def pytest(folder: Path) -> str:
    """Return the command that judges the folder's backends by pytest, if it is one of those.

    One folder with expected failures shows that pytest knows them.
    """
    expected = [one for one in FOLDERS if declared(one, "")]
    if folder in expected[1:]:
        return ""
    few = "formula or mask or shapes" if folder == FOLDERS[0] else "formula and attention"
    return (
        f"pytest -q -c {ROOT}/conformance/outside.ini --rootdir {{env_tmp_dir}} "
        f"{declared(folder, '--override-ini=attentest_deviations=')} "
        f"--pyargs attentest.suite {effort(folder)} {names(folder, '--backend=')} "
        f"-k '{few}'"
    )


def workers(folder: Path) -> str:
    """Return the option for one process per backend, as envs run in parallel themselves."""
    return f"--workers {len(names(folder).split())}"


def rank(folder: Path) -> tuple[bool, bool, str]:
    """Return where an env comes: those with families take longest, then those with a library."""
    return not families(folder), not extra(folder), folder.name


os.environ["ATTENTEST_ENVS"] = ", ".join(folder.name for folder in sorted(FOLDERS, key=rank))
os.environ["ATTENTEST_FOLDERS"] = "\n".join(f"-e {folder}" for folder in FOLDERS)
for one in FOLDERS:
    os.environ |= {
        f"ATTENTEST_FOLDER_{one.name}": f"-e {one}{extra(one)}",
        f"ATTENTEST_RUN_{one.name}": f"{names(one)} {declared(one, '--deviations=')} "
        f"{undiagnosed(one)} {examples(one)} {workers(one)}",
        f"ATTENTEST_FAMILIES_{one.name}": families(one),
        f"ATTENTEST_PYTEST_{one.name}": pytest(one),
    }
os.environ["ATTENTEST_PACKAGES"] = " ".join(str(path.relative_to(ROOT)) for path in PACKAGES)
