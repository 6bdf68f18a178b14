"""Builds a wheel of every package here and installs them, and nothing else of the tree.

Called as `python .ci/wheels.py FOLDER` inside an env that has uv and hatchling; the wheels are
left in FOLDER. What they depend on comes in under constraints.txt.
"""

import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
UV = [sys.executable, "-m", "uv", "pip"]


def packages() -> list[Path]:
    """Return the folders that hold a package, the spec first."""
    found = sorted(ROOT.glob("implementations/*/pyproject.toml"))
    return [ROOT / "spec", ROOT / "conformance", *(path.parent for path in found)]


def main(folder: Path) -> None:
    """Build into an emptied `folder`, install from it, and check that nothing is missing."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for package in packages():
        command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
        subprocess.run(command, cwd=package, check=True)
    wheels = [str(path) for path in sorted(folder.glob("*.whl"))]
    # A wheel built anew has the version of the one before it, which would stay where it is.
    names = [Path(wheel).name.partition("-")[0].replace("_", "-") for wheel in wheels]
    again = [word for name in names for word in ("--reinstall-package", name)]
    pinned = ["-c", str(ROOT / "constraints.txt")]
    here = ["--python", sys.executable]
    subprocess.run([*UV, "install", *here, *pinned, *again, *wheels], check=True)
    subprocess.run([*UV, "check", *here], check=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
