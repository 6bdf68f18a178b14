"""Installs every package here with the lowest versions that the spec and the suite ask for.

Called as `python .ci/lowest.py` in an env that has uv, packaging and torch, whose version stays:
builds of the lowest one are hard to come by.
"""

import subprocess
import sys
import tomllib
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[1]
STAYS = "torch"


def lowest(project: Path) -> Iterator[str]:
    """Yield what the package in `project` asks for, extras too, each in its lowest version."""
    table = tomllib.loads((project / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = table.get("optional-dependencies", {})
    for own in map(Requirement, chain(table["dependencies"], *extras.values())):
        bounds = [one.version for one in own.specifier if one.operator == ">="]
        if len(bounds) != 1:
            raise SystemExit(f"{project.name} asks for {own} without a lowest version")
        if own.name != STAYS and not own.name.startswith(("attentest", "jax")):
            yield f"{own.name}=={bounds[0]}"


def main() -> None:
    """Install, and check that all agree."""
    install = [sys.executable, "-m", "uv", "pip", "install", "--python", sys.executable]
    parts = ROOT / "spec", ROOT / "conformance"
    pins = sorted({pin for one in parts for pin in lowest(one)})
    subprocess.run([*install, *pins], check=True)
    folders = [*parts, *(one.parent for one in ROOT.glob("implementations/*/pyproject.toml"))]
    editable = [word for one in folders for word in ("-e", str(one))]
    subprocess.run([*install, "--no-deps", *editable], check=True)


if __name__ == "__main__":
    main()
