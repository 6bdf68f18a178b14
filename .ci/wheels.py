"""Builds a wheel of every package here and installs them, and nothing else of the tree.

Called as `python .ci/wheels.py FOLDER` inside an env that has pip and hatchling; the wheels are
left in FOLDER. What they depend on comes in under constraints.txt.
"""

import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PIP = [sys.executable, "-m", "pip"]


def packages() -> list[Path]:
    """Return the folders that hold a package, the ones without dependants last."""
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
    pinned = ["-c", str(ROOT / "constraints.txt")]
    subprocess.run([*PIP, "install", "-q", *pinned, *wheels], check=True)
    # A rebuilt wheel has the version of the one before it, and pip alone would keep the old one.
    again = ["install", "-q", "--force-reinstall", "--no-deps", "--no-index"]
    subprocess.run([*PIP, *again, *wheels], check=True)
    subprocess.run([*PIP, "check"], check=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
