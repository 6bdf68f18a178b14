"""The implementations of the repository: their folders, and what their settings say."""

import tomllib
from pathlib import Path
from typing import Any

from folders import REPOSITORY

FOLDERS = sorted(path.parent for path in REPOSITORY.glob("implementations/*/pyproject.toml"))
SKIPPED = {".git", ".tox", ".venv", "__pycache__", "_build", "generated", "build", "dist"}
"""Folders that are not read: what is in them was generated or installed."""

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
