"""The folders of the repository that tests read from."""

from pathlib import Path

SUPPORT = Path(__file__).resolve().parent
TESTS = SUPPORT.parent
REPOSITORY = TESTS.parents[1]
DOCS = REPOSITORY / "docs"
