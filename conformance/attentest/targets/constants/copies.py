"""Sizes that are constants of the code: a copy of its files has others in their place.

The functions need nothing else of the suite: reproductions and written adapters contain their
source.
"""

import ast
import functools
import inspect
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar
from weakref import WeakKeyDictionary

from attentest.targets.constants.source import (
    LACKING,
    Constants,
    computed_numbers,
    keys_of_files,
    lacking,
    numbers_of_calls,
)


class Copies:
    """Copies of the file of `thing`, and of the files of its folder that it imports.

    `found` are the constants in them, by name. Those in `last`, the ones that were used last, can
    be imported, for a pickle.
    """

    last: ClassVar[dict[Any, "Copies"]] = {}

    def __init__(self, thing: Any, values: dict[str, Any]) -> None:
        self.values = values
        self.complete = True  # no statement failed: it serves other classes of the file as well
        self.found: dict[str, Any] = {}
        self.made: dict[str, ModuleType] = {}
        home = sys.modules[thing.__module__]
        self.home, self.name = home.__name__, thing.__qualname__.partition(".")[0]
        self.root = self.folder(home)
        try:
            self.file: Any = self.copy(home)
        except BaseException:
            self.forget()
            raise

    def of(self, thing: Any) -> Any:
        """Return the copy of `thing`, which is defined in the same file."""
        return functools.reduce(getattr, thing.__qualname__.split("."), self.file)

    def forget(self) -> None:
        """Leave nothing that can be imported."""
        for one in self.made.values():
            sys.modules.pop(one.__name__, None)

    @staticmethod
    def folder(home: ModuleType) -> Path:
        """Return the folder from which the module `home` is imported."""
        file = Path(str(home.__file__)).resolve()
        place = file.parent if file.stem == "__init__" else file.with_suffix("")
        up = place.parent
        for name in home.__name__.split(".")[::-1]:
            if place.name != name:
                break
            place, up = place.parent, place.parent
        return up

    def copy(self, module: Any) -> Any:
        """Return the copy of `module`, itself where its file is not of the folder."""
        file = getattr(module, "__file__", None) or next(iter(getattr(module, "__path__", ())), "")
        place = Path(file or "/").resolve()
        if not isinstance(module, ModuleType) or not place.is_relative_to(self.root):
            return module
        if "site-packages" in place.parts or module.__name__ in self.made:
            return self.made.get(module.__name__, module)
        made = ModuleType(f"{module.__name__}_{id(self)}")
        self.made[module.__name__] = sys.modules[made.__name__] = made
        own = vars(module).get("__builtins__", __builtins__)
        own = dict(own if isinstance(own, dict) else vars(own))
        kept = ("__file__", "__package__", "__path__", "__spec__", "__loader__")
        vars(made).update({one: vars(module)[one] for one in kept if one in vars(module)})
        vars(made)["__copy__"] = True
        own["__import__"] = functools.partial(self.bring, own["__import__"])
        own["open"] = functools.partial(self.opened, own["open"])
        vars(made)["__builtins__"] = own
        if place.suffix == ".py":
            tree = ast.parse(place.read_bytes())
            left = vars(module).get("__left_out__", {})
            missing = [one for one in self.values if one not in vars(module)]
            vars(made).update({one: self.values[one] for one in missing})
            tree.body = [one for one in tree.body if one.lineno not in left]
            computed = computed_numbers(tree, vars(module))
            named = Constants(self.values, self.found, computed)
            tree = ast.fix_missing_locations(named.visit(tree))
            self.run(tree.body, made, str(place), self.name if module.__name__ == self.home else "")
        return made

    def run(self, body: list[ast.stmt], made: ModuleType, place: str, name: str) -> None:
        """Run the statements of a file; those behind the definition of `name` may fail.

        They call what is defined, with inputs that other sizes do not fit.
        """
        defined = (ast.FunctionDef, ast.ClassDef)
        at = [n for n, one in enumerate(body) if isinstance(one, defined) and one.name == name]
        end = at[-1] + 1 if at else len(body)
        exec(compile(ast.Module(body[:end], []), place, "exec"), vars(made))
        for one in body[end:]:
            try:
                exec(compile(ast.Module([one], []), place, "exec"), vars(made))
            except Exception:  # code that a user wrote may raise anything
                if isinstance(one, (*defined, ast.Import, ast.ImportFrom)):
                    raise
                self.complete = False

    def bring(
        self,
        usual: Callable[..., Any],
        name: str,
        globals: Any = None,
        locals: Any = None,
        fromlist: Any = (),
        level: int = 0,
    ) -> Any:
        """Import as `usual` does, and give the copies."""
        found = usual(name, globals, locals, fromlist, level)
        made = self.copy(found)
        if made is found:
            return self.reading(found) if name in ("yaml", "json", "toml", "tomllib") else found
        for one in fromlist or ():
            if isinstance(getattr(found, one, None), ModuleType) and not hasattr(made, one):
                setattr(made, one, self.copy(getattr(found, one)))
        inner, outer = found, made
        for one in name.split(".")[1:] if not fromlist else ():
            inner = getattr(inner, one)
            setattr(outer, one, self.copy(inner))
            outer = getattr(outer, one)
        return made

    def reading(self, module: ModuleType) -> ModuleType:
        """Return a module that reads files of settings, and gives other numbers for theirs."""
        made = ModuleType(module.__name__)
        vars(made).update(vars(module))
        for one in ("load", "loads", "safe_load", "full_load"):
            if hasattr(module, one):
                setattr(made, one, functools.partial(self.loaded, getattr(module, one)))
        return made

    def loaded(self, load: Callable[..., Any], *rest: Any, **more: Any) -> Any:
        """Return what `load` does, with `values` in the place of numbers by their keys."""
        held = [load(*rest, **more)]
        for one in held:
            pairs = one.items() if isinstance(one, dict) else ()
            numbers = [key for key, value in pairs if type(value) in (int, float)]
            held += [value for value in (one.values() if pairs else ()) if type(value) is dict]
            if pairs:
                one.update({key: self.values[key] for key in numbers if key in self.values})
        return held[0]

    def opened(self, usual: Callable[..., Any], file: Any, *rest: Any, **more: Any) -> Any:
        """Open a file as `usual` does, also by a path from an outer folder of the project."""
        if isinstance(file, str | Path) and not rest and not Path(file).exists():
            places = [up / file for up in (self.root, *self.root.parents[:2])]
            file = next((one for one in places if one.is_file()), file)
        return usual(file, *rest, **more)


def copied(thing: Any, **values: Any) -> Any:
    """Return `thing` of a copy of its file, in which `values` are in the place of constants.

    The files of its folder that it imports are copied, too. The last 16 copies are kept; one is for
    all that its file defines.
    """
    home = sys.modules[thing.__module__]
    key, same = (thing, *values.items()), (home, *values.items())
    key = same if same in Copies.last else key
    found = Copies.last.pop(key, None) or Copies(thing, values)
    Copies.last[same if found.complete else key] = found
    for old in list(Copies.last)[:-16]:
        Copies.last.pop(old).forget()
    return found.of(thing)


def is_copy_of(one: type, thing: Any) -> bool:
    """Say whether the class `one` is that of a copy of the file of the class `thing`."""
    home = vars(sys.modules.get(one.__module__, sys))
    name = one.__module__.rpartition("_")[0], one.__qualname__
    return "__copy__" in home and name == (thing.__module__, getattr(thing, "__qualname__", ""))


SECONDS = 1.0
"""Limit of the processor time of a copy of the files: one is made for all sizes in use."""


def is_running(home: ModuleType | None) -> bool:
    """Say whether a module is a notebook or the script that runs: its code calls this itself."""
    return home is None or home.__name__ == "__main__" or not hasattr(home, "__file__")


def numbers_named(thing: Callable[..., Any]) -> dict[str, Any]:
    """Return the numbers with names in the file of `thing`, and in those of its folder in use.

    There are none for an installed package, for a copy, and for what can be no copy.
    """
    found: dict[str, Any] = {}
    home = sys.modules.get(thing.__module__)
    file = getattr(home, "__file__", None)
    if home is None or is_running(home) or hasattr(home, "__copy__"):
        return found
    if not file or "site-packages" in Path(file).parts:
        return found
    others = len(sys.modules) - sum(len(one.made) for one in Copies.last.values())
    count, known = _KNOWN.get(home, (0, found))
    if count != others:
        known = {**numbers_of_calls(home), **_numbers_around(home, file)}
        _KNOWN[home] = others, known
    return dict(known)


_KNOWN: WeakKeyDictionary[ModuleType, tuple[int, dict[str, Any]]] = WeakKeyDictionary()
"""The numbers found for a module, and how many modules there were that are no copies."""


def _numbers_around(home: ModuleType, file: str) -> dict[str, Any]:
    """Return the numbers with names in the file of a module, and in those of its folder in use."""
    found: dict[str, Any] = {}
    root = f"{Copies.folder(home)}{os.sep}"
    # Not `getattr`, which asks a lazy module for what it lacks: thousands of modules are in use.
    modules = [getattr(one, "__dict__", {}) for one in list(sys.modules.values())]
    files = [one.get("__file__") for one in modules]
    for one in dict.fromkeys([file, *filter(None, files)]):
        if one.endswith(".py") and (_FOLDERS.get(one) or _folder_of(one)).startswith(root):
            with suppress(OSError, SyntaxError, ValueError):
                for name, value in _numbers_of(Path(one).read_bytes()).items():
                    found.setdefault(name, value)
    for one in modules:  # other files may lack what they import from a file of data
        if (_FOLDERS.get(str(one.get("__file__"))) or "").startswith(root):
            with suppress(OSError, SyntaxError, ValueError):
                tree = _tree_of(Path(one["__file__"]).read_bytes())
                for name in lacking(tree, one) if "__left_out__" in one else ():
                    found.setdefault(name, LACKING)
                for name, value in computed_numbers(tree, one).items():
                    found.setdefault(name, value)  # as the length of a table of words
    return found


_FOLDERS: dict[str, str] = {}
"""The folders of files: thousands of modules are asked about whenever code is read."""


def _folder_of(file: str) -> str:
    """Return the folder of `file`, without links and with a separator at its end."""
    folder = os.path.realpath(os.path.dirname(os.path.abspath(file))) + os.sep
    if os.path.isabs(file):
        _FOLDERS[file] = folder
    return folder


@functools.lru_cache(256)
def _tree_of(source: bytes) -> ast.Module:
    return ast.parse(source)


@functools.lru_cache(256)
def _numbers_of(source: bytes) -> dict[str, Any]:
    """Return the numbers with names in a source."""
    found: dict[str, Any] = {}
    Constants({}, found).visit(ast.parse(source))
    return found


COPIES_SOURCE = "\n".join(
    [
        "import ast",
        "import functools",
        "import sys",
        "from collections.abc import Callable, Collection",
        "from pathlib import Path",
        "from types import ModuleType",
        "from typing import Any, ClassVar",
        "",
        f"LACKING = {LACKING}",
        "",
        "",
        "",
    ]
) + "\n\n".join(
    inspect.getsource(one) for one in (Constants, keys_of_files, computed_numbers, Copies, copied)
)
"""The classes and the function as code of their own."""
