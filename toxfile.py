"""Finds the implementations, so that a new folder is an env without an edit anywhere.

tox.ini reads what is found from two environment variables that are set here.
"""

import os
from pathlib import Path

FOLDERS = sorted(
    path.parent for path in Path(__file__).resolve().parent.glob("implementations/*/pyproject.toml")
)

os.environ["ATTENTEST_ENVS"] = ", ".join(folder.name for folder in FOLDERS)
os.environ["ATTENTEST_FOLDERS"] = "\n".join(str(folder) for folder in FOLDERS)
