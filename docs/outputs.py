"""Executes the pages and writes into them what their commands print and their code computes.

`python docs/outputs.py --write [PAGE ..]` fills the marked places of all pages, or of some, and
draws their pictures. `--check` changes nothing and fails where a page says something else than its
commands. Times and rounding may differ. The marks are described in `_ext/marked.py`.
"""

import difflib
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

DOCS = Path(__file__).resolve().parent
sys.path.insert(0, str(DOCS / "_ext"))

from executed import Page, Wrong  # noqa: E402  # a module of _ext
from marked import places  # noqa: E402  # a module of _ext

README = DOCS.parent / "README.md"
"""The page that shows blocks of another one, and so comes last."""

WORKERS = 2


def main() -> None:
    """Check or write the pages that are named, or all."""
    mode, *names = sys.argv[1:] or ["--check"]
    if mode not in ("--check", "--write"):
        sys.exit(f"{mode} is neither --check nor --write.")
    pages = [Path(name).resolve() for name in names] or list(marked())
    wrong, written = [], set()
    _compile_torch()
    with ProcessPoolExecutor(WORKERS, mp_context=get_context("spawn")) as workers:
        for last in (False, True):
            some = [one for one in pages if (one == README) is last]
            for files, failure in workers.map(executed, some):
                wrong += _settled(mode, files, failure)
                written |= files.keys()
    if not names:
        wrong += _stale(mode, written)
    if wrong:
        sys.exit("\n".join([*wrong, "python docs/outputs.py --write writes what is printed now."]))


def _compile_torch() -> None:
    """Import torch and the compiler that its optimisers load, once with bytecode written.

    The commands of the pages write none, and in a fresh environment each would compile both anew.
    """
    subprocess.run([sys.executable, "-c", "import torch._dynamo"], check=True)


def marked() -> Iterator[Path]:
    """Yield the pages with marked places; those that take longest come first."""
    pages = [README, *DOCS.glob("*.md"), *DOCS.glob("how-to/*.md"), *DOCS.glob("reference/*.md")]
    texts = {page: page.read_text(encoding="utf-8") for page in pages}
    found = {page: len(places(text)) for page, text in texts.items()}
    yield from sorted(filter(found.get, pages), key=lambda page: -found[page])


def executed(path: Path) -> tuple[dict[Path, str], str]:
    """Execute a page; return its files with their contents, and why it failed, "" if it did not."""
    with tempfile.TemporaryDirectory() as folder:
        page = Page(path, path.read_text(encoding="utf-8"), Path(folder))
        try:
            text = page.executed()
        except Wrong as failure:
            return page.pictures, f"{path.relative_to(DOCS.parent)}: {failure}"
        return {path: text, **page.pictures}, ""


def _settled(mode: str, files: dict[Path, str], failure: str) -> Iterator[str]:
    """Write the files of a page, or yield what is wrong with it."""
    if failure:
        yield failure
    for path, text in files.items():
        old = path.read_text(encoding="utf-8") if path.exists() else ""
        if old == text:
            continue
        if mode == "--write":
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        else:
            yield difference(path, old, text)


def difference(path: Path, old: str, new: str) -> str:
    """Return the lines in which a file differs from what it should hold."""
    name = str(path.relative_to(DOCS.parent))
    lines = difflib.unified_diff(old.splitlines(), new.splitlines(), name, "now", "", "", 1, "")
    return "\n".join(lines)


def _stale(mode: str, written: Iterable[Path]) -> Iterator[str]:
    """Delete the pictures that no page shows, or yield their names."""
    for path in sorted({*(DOCS / "pictures").rglob("*.svg")} - {*written}):
        if path.parent == DOCS / "pictures":
            continue  # of a run of all implementations: docs/figures.py
        if mode == "--write":
            path.unlink()
        else:
            yield f"{path.relative_to(DOCS.parent)} is shown on no page"


if __name__ == "__main__":
    os.environ |= {"OMP_NUM_THREADS": "1", "PYTHONHASHSEED": "0"}
    main()
