"""Finds the implementations, so that a new folder is an env without an edit anywhere.

A folder whose package has the extra `library` gets it in its own env and nowhere else.

tox.ini reads what is found from environment variables that are set here.
"""

import os
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent
FOLDERS = sorted(path.parent for path in ROOT.glob("implementations/*/pyproject.toml"))
PACKAGES = sorted(path.parent for path in ROOT.glob("implementations/*/*/py.typed"))


def with_library(folder: Path) -> str:
    """Return the folder as what its own env installs."""
    told = tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return f"-e {folder}" + "[library]" * ("library" in told.get("optional-dependencies", {}))


os.environ["ATTENTEST_ENVS"] = ", ".join(folder.name for folder in FOLDERS)
os.environ["ATTENTEST_FOLDERS"] = "\n".join(f"-e {folder}" for folder in FOLDERS)
os.environ |= {f"ATTENTEST_FOLDER_{folder.name}": with_library(folder) for folder in FOLDERS}
os.environ["ATTENTEST_PACKAGES"] = " ".join(str(path.relative_to(ROOT)) for path in PACKAGES)
