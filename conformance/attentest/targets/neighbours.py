"""Classes and functions near a class: its parts, and what builds it, in the files around it."""

import ast
import importlib
import inspect
import sys
import textwrap
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import chain
from pathlib import Path
from types import ModuleType
from typing import Any

from torch import nn

from attentest.targets import file_modules
from attentest.targets.definitions import defines
from attentest.targets.imports.folders import project_of, python_files, upwards


def modules_near(
    thing: Any, is_wanted: Callable[[str], bool]
) -> Iterator[list[tuple[str, type[nn.Module]]]]:
    """Yield the modules that may be a part of `thing`, with their names, the nearest group first.

    These are the classes of its own file with a name that `is_wanted`, then those of the files of
    its folder, then those of all files below the folder from which it is imported. Only files
    that define things and do nothing else are run.
    """
    for group in classes_near(thing, is_wanted):
        yield [(name, one) for name, one in group if issubclass(one, nn.Module)]


def classes_near(
    thing: Any, is_wanted: Callable[[str], bool], but: tuple[type, ...] = ()
) -> Iterator[list[tuple[str, type]]]:
    """Yield the classes near `thing` by the order of `modules_near`, without those of `but`."""
    home = sys.modules.get(thing.__module__)
    if home is None:
        return
    yield _wanted([*vars(home).items()], thing, is_wanted, but)
    is_private = file_modules.is_private(home.__name__)
    imported = _imported_already(home)
    for files in _files_around(home) if is_private else _files_of_package(home):
        found: list[tuple[str, Any]] = []
        for one in files:
            is_imported = one in imported
            if any(is_wanted(name) for name in _classes(one, is_imported)):
                held = vars(_loaded(one, home, is_imported) or ModuleType(""))
                found += [pair for pair in held.items() if file_of(pair[1]) == one]
        yield _wanted(found, thing, is_wanted, but)


def functions_that_build(thing: type) -> list[Callable[..., Any]]:
    """Return the functions around the class `thing` that call it and return something.

    These are the functions of its file, or else those of the nearest files with any.
    """
    home, own = sys.modules.get(thing.__module__), file_of(thing)
    if home is None or own is None:
        return []
    for files in ([own], *_files_around(home), _files_of_project(home)):
        names = {one: _builders(one, thing) or _makers(one, thing) for one in files}
        modules = [
            (home if one == own else _loaded(one, home), held)
            for one, held in names.items()
            if held
        ]
        found = [_attribute(module, name) for module, held in modules for name in held]
        same: list[Callable[..., Any]] = [
            one for one in found if inspect.isfunction(one) and _holds(one.__globals__, thing)
        ]
        if same:
            return same
    return []


def _attribute(owner: object, path: str) -> object:
    """Return the value of `path`, the name of a function or of a static method of a class."""
    for name in path.split("."):
        owner = getattr(owner, name, None)
    return owner


def _holds(names: dict[str, Any], thing: type) -> bool:
    """Say whether one of the `names` of a file is the class `thing`, or a module that holds it."""
    held = [names.get(thing.__name__), *filter(inspect.ismodule, names.values())]
    own = file_of(thing)
    both = (one if inspect.isclass(one) else getattr(one, thing.__name__, None) for one in held)
    return any(file_of(one) == own for one in both if inspect.isclass(one))


def files_around(thing: Any) -> list[Path]:
    """Return the file of a user's class or function `thing`, and those around it, it first."""
    home = sys.modules.get(getattr(thing, "__module__", None) or "")
    file = getattr(home, "__file__", None) or ""
    if home is None or not file.endswith(".py") or not file_modules.is_private(home.__name__):
        return []
    return list(dict.fromkeys([Path(file).resolve(), *chain(*_files_around(home))]))


def bodies_naming(thing: type) -> Iterator[list[ast.stmt]]:
    """Yield the statements of the file of the class `thing`, and of those around that import it."""
    home, own = sys.modules.get(thing.__module__), file_of(thing)
    if home is None or own is None:
        return
    yield statements_of(own)
    is_private = file_modules.is_private(home.__name__)
    around = _all_around(home) if is_private else chain(*_files_of_package(home))
    for one in dict.fromkeys(around):
        if one != own and _imports(one, thing):
            yield statements_of(one)


def named_builders(thing: Any) -> str:
    """Return a sentence with functions around the class `thing` that build it.

    "" for none. They are found in the source alone, and have the fewest required arguments. Those
    of a user's files may be in a script, which does more than to define things.
    """
    home = sys.modules.get(getattr(thing, "__module__", ""))
    file = getattr(home, "__file__", None) or ""
    if not (inspect.isclass(thing) and home and file.endswith(".py")):
        return ""
    if file_modules.is_private(home.__name__):
        found = [
            (_required(node), f"{shown(one)}:{node.name}")
            for one in dict.fromkeys([Path(file).resolve(), *_all_around(home)])
            if one == Path(file).resolve() or _imports(one, thing)
            for node in _that_call(statements_of(one), thing)
        ]
    elif home.__package__:
        found = [
            (_required(node), f"{_dotted(one, home)}:{node.name}")
            for one in python_files(_root(home), _MOST)
            for node in _that_call(_body(one), thing)
        ]
    else:
        return ""
    listed = ", ".join(name for _, name in sorted(found)[:3])
    return f" Functions that build it are targets too: {listed}." if listed else ""


def _required(node: ast.FunctionDef) -> int:
    """Return the number of arguments of a function that have no default."""
    held = node.args
    given = len(held.defaults) + len([one for one in held.kw_defaults if one is not None])
    return len(held.posonlyargs) + len(held.args) + len(held.kwonlyargs) - given


def shown(file: Path) -> str:
    """Return the path of `file` as it is typed: from the current folder, where it is below that."""
    here = Path.cwd()
    return str(file.relative_to(here) if file.is_relative_to(here) else file)


def _imports(file: Path, thing: type) -> bool:
    """Say whether `file` imports the class `thing`, and not one of that name of another package."""
    own = file_of(thing)
    parts = set(own.with_suffix("").parts) if own else set()
    froms = [
        one
        for one in statements_of(file)
        if isinstance(one, ast.ImportFrom)
        if one.level or parts.issuperset((one.module or "").split("."))
    ]
    return any(alias.name in (thing.__name__, "*") for one in froms for alias in one.names)


def _builders(file: Path, thing: type) -> list[str]:
    """Return the functions of `file` that call `thing` and return something, static methods too."""
    body = _body(file)
    found = [one.name for one in _that_call(body, thing)]
    for owner in body:
        if isinstance(owner, ast.ClassDef) and owner.name != thing.__name__:
            static = [one for one in owner.body if _is_static(one)]
            found += [f"{owner.name}.{one.name}" for one in _that_call(static, thing)]
    return found


def _makers(file: Path, thing: type) -> list[str]:
    """Return the functions of a script that make a `thing` and return it, and do nothing else.

    The script does more than to define them, and is not run for that.
    """
    if not _imports(file, thing):
        return []
    return [one.name for one in _that_call(statements_of(file), thing) if _returns(one, thing)]


def _returns(node: ast.FunctionDef, thing: type) -> bool:
    """Say whether a function returns a `thing` that it makes, and neither trains nor loads one."""
    inner = list(ast.walk(node))
    calls = [one for one in inner if isinstance(one, ast.Call)]
    called = {getattr(one.func, "attr", getattr(one.func, "id", "")) for one in calls}
    made = {
        getattr(target, "id", "")
        for one in inner
        if isinstance(one, ast.Assign) and _makes(one.value, thing)
        for target in one.targets
    }
    ends = [one.value for one in inner if isinstance(one, ast.Return)]
    is_work = not called.isdisjoint(_WORK)
    return not is_work and any(_makes(one, thing) or getattr(one, "id", "") in made for one in ends)


_WORK = {"backward", "step", "open", "load", "load_state_dict", "train", "fit", "read_csv"}
"""The calls of functions that do more than to make a model."""


def _makes(node: ast.AST | None, thing: type) -> bool:
    """Say whether an expression is a call of `thing`, or one that moves what it makes."""
    if not isinstance(node, ast.Call):
        return False
    if isinstance(node.func, ast.Attribute) and _makes(node.func.value, thing):
        return node.func.attr in ("to", "cuda", "cpu", "float", "double", "eval")
    return getattr(node.func, "attr", getattr(node.func, "id", "")) == thing.__name__


def _is_static(node: ast.stmt) -> bool:
    """Say whether a statement of a class defines a method without `self`."""
    marks = getattr(node, "decorator_list", [])
    return any(isinstance(one, ast.Name) and one.id == "staticmethod" for one in marks)


def _that_call(body: Sequence[ast.stmt], thing: type) -> Iterator[ast.FunctionDef]:
    """Yield the functions of a file's `body` that call `thing` and return something."""
    for node in body:
        inner = list(ast.walk(node)) if isinstance(node, ast.FunctionDef) else []
        calls = [one.func for one in inner if isinstance(one, ast.Call)]
        names = [getattr(one, "attr", getattr(one, "id", "")) for one in calls]
        returns = any(isinstance(one, ast.Return) for one in inner)
        if isinstance(node, ast.FunctionDef) and thing.__name__ in names and returns:
            yield node


def _files_around(home: ModuleType) -> Iterator[list[Path]]:
    """Yield the other files of the folder of a user's module, then those below and above it."""
    file = getattr(home, "__file__", None) or ""
    if not file.endswith(".py") or not file_modules.is_private(home.__name__):
        return
    place = Path(file).resolve()
    root, _ = file_modules.importable(place)
    folders = list(upwards(place.parent))
    if root != place.parent and any(root.glob("*.dist-info")):  # of packages of others, too
        root /= place.relative_to(root).parts[0]
        folders = [up for up in folders if up.is_relative_to(root)]
    above = [up.glob("*.py") for up in folders]
    for files in (place.parent.glob("*.py"), python_files(root), *above):
        yield sorted(one for one in files if one != place)


def _files_of_project(home: ModuleType) -> list[Path]:
    """Return the other files of the project of a user's module, those of its nearest folders first.

    They are looked at for what imports a class of the module, and for nothing else.
    """
    file = getattr(home, "__file__", None) or ""
    if not file.endswith(".py") or not file_modules.is_private(home.__name__):
        return []
    place = Path(file).resolve()
    root = project_of(place.parent)
    return [one for one in python_files(root) if one != place] if root else []


def _all_around(home: ModuleType) -> Iterator[Path]:
    return chain(*_files_around(home), _files_of_project(home))


_MOST = 400
"""Limit of the files of a package: in one with more, another class may be where none is looked."""


def _files_of_package(home: ModuleType) -> Iterator[list[Path]]:
    """Yield the other files of the folder of a module of a package, then those of the package.

    Those with classes that it imports are between these.
    """
    file = getattr(home, "__file__", None) or ""
    if not file.endswith(".py") or not home.__package__:
        return
    place = Path(file).resolve()
    yield sorted(one for one in place.parent.glob("*.py") if one != place)
    yield sorted(_imported(home) - {place})
    files = python_files(_root(home), _MOST)
    if len(files) < _MOST:
        yield [one for one in files if one != place]


def _imported(home: ModuleType) -> set[Path]:
    """Return the files of the package of `home` that define the classes which it imports."""
    files = {file_of(one) for one in list(vars(home).values())}
    return {one for one in files if one is not None and one.is_relative_to(_root(home))}


def _root(home: ModuleType) -> Path:
    """Return the folder of the outermost package of the module `home`."""
    levels = len((home.__package__ or "").split("."))
    return Path(home.__file__ or "").resolve().parents[levels - 1]


def _dotted(file: Path, home: ModuleType) -> str:
    """Return the name by which `file` is a module of the package of `home`."""
    names = file.relative_to(_root(home).parent).with_suffix("").parts
    return ".".join(names[:-1] if names[-1] == "__init__" else names)


def file_of(thing: Any) -> Path | None:
    """Return the file that defines the class `thing`, None for what is none or has none."""
    module = sys.modules.get(getattr(thing, "__module__", None) or "")
    file = getattr(module, "__file__", None) if inspect.isclass(thing) else None
    return Path(file).resolve() if file else None


def is_same_code(one: type, other: type) -> bool:
    """Say whether two classes are copies of each other, apart from comments and layout."""
    try:
        texts = [textwrap.dedent(inspect.getsource(made)) for made in (one, other)]
        first, second = (ast.dump(ast.parse(text)) for text in texts)
    except (OSError, SyntaxError, TypeError):
        return False
    return first == second


def _wanted(
    found: Sequence[tuple[str, Any]],
    thing: Any,
    is_wanted: Callable[[str], bool],
    but: tuple[type, ...],
) -> list[tuple[str, type]]:
    return [
        (name, one)
        for name, one in found
        if inspect.isclass(one) and one is not thing and not issubclass(one, but)
        if is_wanted(name)
    ]


def _imported_already(home: ModuleType) -> set[Path]:
    """Return the files of the package or the folder of `home` that its code has imported."""
    top = home.__name__.partition(".")[0]
    held = [one for name, one in [*sys.modules.items()] if name.partition(".")[0] == top]
    # A module that is loaded when it is asked for would be loaded by `getattr`, or fail to be.
    files = (getattr(one, "__dict__", {}).get("__file__") or "" for one in held)
    return {Path(one).resolve() for one in files if one.endswith(".py")}


def _classes(file: Path, is_imported: bool) -> list[str]:
    """Return the classes of `file`, none where to import it does more than to define things.

    A file that is imported already does nothing anew.
    """
    body = statements_of(file) if is_imported else _body(file)
    return [one.name for one in body if isinstance(one, ast.ClassDef)]


def _body(file: Path) -> list[ast.stmt]:
    """Return the statements of `file`, none where it does more than define things."""
    body = statements_of(file)
    return body if all(map(defines, body)) else []


def statements_of(file: Path) -> list[ast.stmt]:
    """Return the statements of `file`, none where it cannot be read."""
    try:
        return _parsed(file.read_bytes())
    except (OSError, SyntaxError, ValueError):
        return []


@lru_cache(maxsize=512)
def _parsed(source: bytes) -> list[ast.stmt]:
    return ast.parse(source).body


def _loaded(file: Path, home: ModuleType, is_imported: bool = False) -> ModuleType | None:
    try:
        if file_modules.is_private(home.__name__):
            return file_modules.load(file, whole=is_imported or bool(_body(file)))
        return importlib.import_module(_dotted(file, home))
    except Exception:  # code that a user wrote may raise anything: it is no part then
        return None
