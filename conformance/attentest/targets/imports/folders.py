"""Folders in which what a file imports may be: those above it, and the Python files below them."""

import os
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice, takewhile
from pathlib import Path

_MOST = 60
"""Limit of the Python files of one folder that are looked at."""
_FOLDERS = 200
"""Limit of the folders below one in which they are looked for."""
_ENTRIES = 2000
"""Limit of the files and folders that are listed of each of these."""
_UPWARDS = 4
"""Limit of the folders above a file in which what it imports is looked for."""
_BEYOND = 2
"""Limit of those above the working folder."""
_PROJECT = (".git", "pyproject.toml", "setup.cfg")  # nothing above such a folder is looked at
_DOCUMENTED = ("README.md", "README.rst", "requirements.txt", "LICENSE")
"""Files that the folder of a project has, as another one may."""


def around(folder: Path, top: str) -> Path | None:
    """Return the folder that holds the one called `top` in which `folder` is, None for none."""
    inner = [folder, *folder.parents[: _UPWARDS - 1]]
    near = list(takewhile(lambda one: one.name.isidentifier(), inner))
    return next((one.parent for one in near if one.name == top), None)


def upwards(folder: Path) -> Iterator[Path]:
    """Yield the folders above `folder` that belong to its project, the nearest first."""
    inner = folder
    for up in folder.parents[:_UPWARDS]:
        is_end = inner == Path.cwd() or any((inner / one).exists() for one in _PROJECT)
        if is_end or not inner.name.isidentifier():
            return
        yield up
        inner = up


def project_of(folder: Path) -> Path | None:
    """Return the folder of the project that holds `folder`, by what such a folder has in it.

    It may be above the working folder, where that is one of the project's; None for none.
    """
    found = None
    for up in (folder, *folder.parents[:_UPWARDS]):
        if up in Path.cwd().parents[_BEYOND:]:
            break
        if any((up / one).exists() for one in (*_PROJECT, "setup.py")):
            return up
        found = up if any((up / one).is_file() for one in _DOCUMENTED) else found
    return found


def files_of(folder: Path, top: str, *, inner: bool = False) -> list[Path]:
    """Return the files that `import top` may run in `folder`: none where it is not there.

    What is imported from an `inner` module of it, as by `top.inner`, is in no file called `top`.
    """
    file = folder / f"{top}.py"
    return [file] if file.is_file() and not inner else python_files(folder / top)


def python_files(folder: Path, most: int = _MOST) -> list[Path]:
    """Return the Python files below `folder`, those of the nearest folders first.

    A project may hold millions of other files: `most` files and some folders are looked at, and
    none of folders that are hidden or environments of Python.
    """
    found: list[Path] = []
    waiting = deque([folder])
    for _ in range(_FOLDERS):
        if not waiting or len(found) >= most:
            break
        with suppress(OSError), os.scandir(waiting.popleft()) as entries:
            held = sorted(islice(entries, _ENTRIES), key=lambda one: one.name)
            if any(one.name == "pyvenv.cfg" for one in held):
                continue
            found += [Path(one.path) for one in held if one.name.endswith(".py") and one.is_file()]
            folders = [one for one in held if one.name.isidentifier()]
            waiting += [Path(one.path) for one in folders if one.is_dir(follow_symlinks=False)]
    return found[:most]


def beyond(folder: Path, top: str) -> Path | None:
    """Return the folder above the working folder that holds a folder called `top`, None for none.

    Code that is run in a folder of its project imports what lies in the other folders of it. Files
    there are none of its packages.
    """
    inner = [Path.cwd(), *Path.cwd().parents[: _BEYOND - 1]]
    if not folder.is_relative_to(inner[0]):
        return None
    for one in inner:
        if not one.name.isidentifier() or any((one / mark).exists() for mark in _PROJECT):
            return None
        if (one.parent / top).is_dir() and files_of(one.parent, top):
            return one.parent
    return None
