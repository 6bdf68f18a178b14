"""The folders that users' files put on `sys.path` while they are loaded, and those of everybody.

The former count for the imports of these files, also later, and for nothing else: `sys.path` is
what it was after the outermost file is loaded.
"""

import site
import sys
import sysconfig
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.machinery import PathFinder
from pathlib import Path

from attentest.analysis.lines.recording import PACKAGES

_before: list[list[str]] = []
"""The path before the outermost file that is being loaded, as the only item."""


@contextmanager
def restored_path() -> Iterator[None]:
    """Restore `sys.path` after the outermost file is loaded."""
    if _before:
        yield
        return
    _before.append(list(sys.path))
    try:
        yield
    finally:
        sys.path[:] = _before.pop()


@dataclass
class AddedPaths:
    """The entries that were added in front of the path, and behind it."""

    front: list[str] = field(default_factory=list)
    back: list[str] = field(default_factory=list)

    def note(self) -> None:
        """Remember the entries that files added since the outermost one began to be loaded."""
        if not _before or sys.path == _before[0]:
            return
        known, held = {*_before[0], *self.front, *self.back}, sys.path
        first = next((i for i, one in enumerate(held) if one in _before[0]), len(held))
        self.front = [one for one in held[:first] if one not in known] + self.front
        self.back += [one for one in held[first:] if one not in known]

    def holding(self, top: str) -> Path | None:
        """Return the added folder that `import top` leads to, None for any other place."""
        added = [*self.front, *self.back]
        if not added or top in sys.stdlib_module_names:
            return None
        others = [one for one in sys.path if one not in added]
        found = PathFinder.find_spec(top, [*self.front, *others, *self.back])
        if found is None:
            return None
        places = [Path(one) for one in found.submodule_search_locations or [found.origin or ""]]
        folders = [Path(one).resolve() for one in added]
        return next(
            (one for one in folders if any(p.resolve().parent == one for p in places)), None
        )


def is_installed(folder: Path) -> bool:
    """Say whether `folder` holds the standard library or what is installed."""
    places = [sysconfig.get_path(one) for one in ("stdlib", "platstdlib", "purelib", "platlib")]
    known = {Path(one).resolve() for one in [*places, site.getusersitepackages()]}
    return folder.name in PACKAGES or folder in known
