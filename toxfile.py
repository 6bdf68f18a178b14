"""Finds the implementations, so that a new folder is an env without an edit anywhere.

tox.ini reads what is found from environment variables that are set here.
"""

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parent
FOLDERS = sorted(path.parent for path in ROOT.glob("implementations/*/pyproject.toml"))
PACKAGES = sorted(path.parent for path in ROOT.glob("implementations/*/*/py.typed"))

os.environ["ATTENTEST_ENVS"] = ", ".join(folder.name for folder in FOLDERS)
os.environ["ATTENTEST_FOLDERS"] = "\n".join(f"-e {folder}" for folder in FOLDERS)
os.environ["ATTENTEST_PACKAGES"] = " ".join(str(path.relative_to(ROOT)) for path in PACKAGES)
