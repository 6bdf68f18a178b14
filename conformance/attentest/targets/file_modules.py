"""Modules made from users' files, in a separate namespace for each folder.

A file is imported as `_target_HASH.NAME`, where HASH identifies the folder, or the one that holds
its outermost package (the folders upwards that have an `__init__.py`, or lie between two that have
one, or that its relative imports reach), or the folder upwards from which its imports are written,
such as that of the whole project. Its code imports by ordinary statements, and `import NAME` in it
means, in this order, also when it is run later:

1. the file or package NAME of that folder, unless it is the importing file itself;
2. that of a folder which the file put on `sys.path`, by the order of the path;
3. what everybody else gets: the standard library and what is installed;
4. a folder NAME without `__init__.py`, or a file in the importing file's own package.

Modules of two folders never mix, and no name outside the namespace changes: `sys.path` stays as it
is, and `sys.modules` gains the private names alone. Classes can be copied, pickled within this
process, and read by `inspect` and `typing`. A file that is loaded again is the same module for as
long as no file that was imported from its folder has changed; then all of them are imported anew.
Where the `__init__.py` of a package fails, a second attempt goes on with the names that it had
defined by then; where a statement fails, a last one keeps what the others of its file define.
`importlib.import_module` in such code follows the same order, and `importlib.metadata.version`
knows the packages of the folder. What a library imports by name for it, such as the classes in a
pickle, is looked up as for everybody. Files of the standard library and of installed packages are
imported under the names that they have.
"""

import ast
import builtins
import hashlib
import importlib.metadata
import importlib.util
import sys
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest.mock import patch

from attentest.results.text import summary
from attentest.targets import definitions
from attentest.targets.imports.added_paths import AddedPaths, is_installed, restored_path
from attentest.targets.imports.folders import around, beyond, files_of, upwards
from attentest.targets.imports.importlibs import Importlib
from attentest.targets.imports.named_devices import note_named_cuda
from attentest.targets.imports.relative import relative_files

_PREFIX = definitions.NAMESPACE
_ALONE = "__definitions"
"""The end of the name of a module that holds the definitions of a file alone."""
_MOST = 200
"""The largest number of files whose imports are read before one is run."""
_folders: dict[str, "_Folder"] = {}
"""The folders that files were imported from, by the name of their namespace."""


def load(path: Path, *, whole: bool = True) -> ModuleType:
    """Return the module of the file at `path`, imported unless it is there and unchanged.

    Without `whole`, only its statements that define something are run, in a module of its own.
    Raises FileNotFoundError where there is none, and whatever the file raises.
    """
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}")
    root, name = importable(path)
    importlib.invalidate_caches()
    if is_installed(root):
        return importlib.import_module(name)
    return _folder_at(root).load(path.resolve(), name if whole else name + _ALONE)


def _folder_at(root: Path) -> "_Folder":
    """Return the namespace of `root`, a new one where its files have changed."""
    known = [one for one in _folders.values() if one.path == root]
    return known[-1] if known and not known[-1].changed else _Folder(root, len(known))


def importable(path: Path) -> tuple[Path, str]:
    """Return the folder from which the file at `path` can be imported, and the name for that."""
    place = path.resolve()
    names = stem = [] if place.stem == "__init__" else [place.stem.replace(".", "_")]
    folder = place.parent
    levels = _levels(place)
    while folder.name.isidentifier() and (
        (folder / "__init__.py").is_file()
        or len(names) <= levels
        or (len(names) > 1 and (folder.parent / "__init__.py").is_file())
    ):
        names = [folder.name, *names]
        folder = folder.parent
    above = folder if is_installed(folder) else _folder_of_imports(place, folder)
    return above, ".".join([*place.parent.relative_to(above).parts, *stem])


def _folder_of_imports(file: Path, folder: Path) -> Path:
    """Return the nearest folder from which the imports of `file` can be written.

    It is `folder` unless a name that neither this nor what is installed has is one of a folder
    above, or of one between it and `file`, which relative imports may not leave; the files of
    `folder` that are imported count, too, by dots as well, up to a limit, the nearest first.
    """
    asked, seen = deque([file]), {file}
    up = file.parents[max(1, _levels(file)) : len(file.relative_to(folder).parts) - 1]
    for _ in range(_MOST):
        if not asked:
            break
        importing = asked.popleft()
        near = {*relative_files(importing, _imports(importing))} - seen
        asked.extend(sorted(near))
        seen |= near
        for top, inner in _imported(importing).items():
            places = [importing.parent, folder]
            held = {one for up in places for one in files_of(up, top, inner=inner)}
            asked.extend(sorted(held - seen))
            seen |= held
            if held - {importing} or _is_known(top, importing):
                continue
            above = next((one for one in (*up, *upwards(folder)) if files_of(one, top)), None)
            if (above := above or around(folder, top) or beyond(folder, top)) is not None:
                return above
    return folder


def _is_known(top: str, importing: Path, own: Path | None = None) -> bool:
    """Say whether `top` is installed or standard, no name of `importing`, and not below `own`."""
    try:
        spec = importlib.util.find_spec(top)
    except (ImportError, ValueError):
        return True
    inside = (origin := spec and spec.origin) and own and Path(origin).is_relative_to(own)
    return top in sys.stdlib_module_names or not (inside or origin in (None, str(importing)))


def _imported(file: Path) -> dict[str, bool]:
    """Return the first words of the absolute imports of `file`, and whether others follow them."""
    found: dict[str, bool] = {}
    for one in [name for name, level in _imports(file) if name and not level]:
        top, _, inner = one.partition(".")
        found[top] = found.get(top, False) or bool(inner)
    return found


def _levels(file: Path) -> int:
    """Return how many folders up the relative imports of `file` reach: 1 for `from . import x`."""
    return max((level for _, level in _imports(file)), default=0)


def _imports(file: Path) -> list[tuple[str, int]]:
    """Return the modules that `file` imports, and how many folders up; none if it cannot be read.

    The import will say what is wrong with it.
    """
    try:
        return _imports_of(file.read_bytes())
    except (OSError, SyntaxError, ValueError):
        return []


@lru_cache(maxsize=1024)
def _imports_of(source: bytes) -> list[tuple[str, int]]:
    found: list[tuple[str, int]] = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found += [(one.name, 0) for one in node.names]
        elif isinstance(node, ast.ImportFrom):
            found.append((node.module or "", node.level))
    return found


def public_names(text: str) -> str:
    """Return `text` with the names of modules as their authors know them."""
    for name in _folders:
        text = text.replace(f"{name}.", "")
    return text


def failing_packages(module: ModuleType) -> dict[str, str]:
    """Return the packages of the folder of `module` that raise, each with its exception."""
    folder = _folders.get(module.__name__.partition(".")[0])
    failing = folder.failing if folder is not None else {}
    return {public_names(name): public_names(why) for name, why in failing.items()}


def is_private(name: str) -> bool:
    """Say whether `name` is that of a module in a namespace of this file."""
    return name.partition(".")[0] in _folders


class _Folder:
    """One folder, and the namespace in which its modules live."""

    def __init__(self, path: Path, earlier: int) -> None:
        """Make a namespace for `path`; `earlier` ones hold its files as they were before."""
        self.path = path
        digest = hashlib.sha256(str(path).encode()).hexdigest()[:12]
        self.name = f"{_PREFIX}{digest}" + (f"_{earlier}" if earlier else "")
        self.stamps: dict[Path, tuple[int, int]] = {}
        self.files: dict[str, Path] = {}
        self.added = AddedPaths()
        self.others: dict[Path, _Folder] = {}
        self.failing: dict[str, str] = {}
        self._tolerant, self.partial = False, ""
        self._importlib = Importlib(path, self.home)
        _folders[self.name] = self

    @property
    def changed(self) -> bool:
        """Whether a file that was imported from here is another one by now, or is gone."""
        stamps = [one for other in (self, *self.others.values()) for one in other.stamps.items()]
        return any(_stamp(path) != stamp for path, stamp in stamps)

    def load(self, path: Path, name: str) -> ModuleType:
        """Return the module of the file at `path`, which is called `name` in this folder."""
        self.files[f"{self.name}.{name}"] = path
        if _Finder not in sys.meta_path:  # before those that know nothing of namespaces
            sys.meta_path.insert(0, _Finder)
        own = f"{self.name}.{name}"
        try:
            return importlib.import_module(own)
        except (Exception, SystemExit):
            self._tolerant = bool(self.failing)
            for partial in ("", self.name) if self._tolerant else (self.name,):
                self.partial = partial
                with suppress(Exception, SystemExit):
                    return importlib.import_module(own)
            while self.failing:
                sys.modules.pop(self.failing.popitem()[0], None)
            raise
        finally:
            self._tolerant, self.partial = False, ""

    def tolerates(self, module: ModuleType, failure: Exception) -> bool:
        """Say whether `module` is kept although it raised: packages, in another attempt."""
        if not hasattr(module, "__path__") or module.__name__ in self.files:
            return False
        self.failing[module.__name__] = summary(failure)
        return self._tolerant

    def _other(self, top: str) -> "_Folder | None":
        """Return the namespace of a folder on the path of this one's files that holds `top`."""
        self.added.note()
        place = self.added.holding(top)
        if place is None or place == self.path or is_installed(place):
            return None
        if place not in self.others:
            self.others[place] = _folder_at(place)
        return self.others[place]

    def home(self, top: str, asking: Mapping[str, Any]) -> str:
        """Return the package in which the module `asking` finds `top`, "" for that of everybody.

        `asking` are the global names of the module.
        """
        private = f"{self.name}.{top}"
        package = asking.get("__package__") or self.name
        if asking.get("__name__") == private != package:
            return ""
        found = importlib.util.find_spec(private)
        if found is not None and found.has_location:
            return "" if _is_shared(top, found) else self.name
        if (other := self._other(top)) is not None:
            found = importlib.util.find_spec(f"{other.name}.{top}")
            shared = found is not None and found.has_location and _is_shared(top, found)
            return "" if shared else other.name
        if top in sys.modules or _is_known(top, Path(str(asking.get("__file__"))), self.path):
            return ""
        homes = (self.name, package)
        return next((one for one in homes if importlib.util.find_spec(f"{one}.{top}")), "")

    def import_(
        self,
        name: str,
        globals: Mapping[str, Any] | None = None,
        locals: Mapping[str, Any] | None = None,
        fromlist: Sequence[str] | None = (),
        level: int = 0,
    ) -> Any:
        """Import as `builtins.__import__` does, with the modules of this folder first."""
        top, _, _ = name.partition(".")
        home = "" if level else self.home(top, globals or {})
        own = f"{home}.{name}" if home else name
        found = builtins.__import__(own, globals, locals, fromlist or (), level)
        if found is importlib:
            return self._importlib
        if found is importlib.metadata:
            return self._importlib.metadata
        return sys.modules[f"{home}.{top}"] if home and not fromlist else found


class _Finder:
    """Finds the namespaces and their modules."""

    @staticmethod
    def find_spec(
        name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return how the module `name` is loaded, None for one of no namespace."""
        folder = _folders.get(name.partition(".")[0])
        if folder is None:
            return None
        if name == folder.name:
            root = ModuleSpec(name, None, is_package=True)
            root.submodule_search_locations = [str(folder.path)]
            return root
        if file := folder.files.get(name):
            loader = _Loader(folder, name, file)
            return importlib.util.spec_from_file_location(name, file, loader=loader)
        found = PathFinder.find_spec(name, path)
        if found is not None and isinstance(found.loader, SourceFileLoader):
            found.loader = _Loader(folder, name, Path(found.loader.path))
        return found


class _Loader(SourceFileLoader):
    """Runs a file of one folder with that folder's imports; no compiled copy is left in it."""

    def __init__(self, folder: _Folder, name: str, path: Path) -> None:
        super().__init__(name, str(path))
        self._folder = folder

    def get_code(self, fullname: str) -> Any:
        """Return the code of the file as it is now."""
        return self.source_to_code(self.get_data(self.path), self.path)

    def exec_module(self, module: ModuleType) -> None:
        """Run the file."""
        self._folder.stamps[Path(self.path)] = _stamp(Path(self.path))
        own = {**vars(builtins), "__import__": self._folder.import_}
        vars(module)["__builtins__"] = own
        with restored_path(), patch.object(sys, "argv", [self.path]):  # as it is run alone
            try:
                source, folder = self.get_data(self.path), self._folder
                note_named_cuda(module, source)
                alone = module.__name__.endswith(_ALONE)
                if alone or definitions.is_script(module, folder.files, folder.partial, source):
                    definitions.run_definitions(
                        source, self.path, module, () if alone else folder.files, alone=alone
                    )
                else:
                    super().exec_module(module)
            except Exception as failure:
                if not self._folder.tolerates(module, failure):
                    raise
            self._folder.added.note()


def _stamp(path: Path) -> tuple[int, int]:
    """Return what tells a file from an earlier one in its place."""
    try:
        found = path.stat()
    except OSError:
        return 0, 0
    return found.st_mtime_ns, found.st_size


def _is_shared(top: str, found: ModuleSpec) -> bool:
    """Say whether everybody has the file that was `found` already, as the module `top`."""
    spec = getattr(sys.modules.get(top), "__spec__", None)
    return found.name not in sys.modules and spec is not None and spec.origin == found.origin
