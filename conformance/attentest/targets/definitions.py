"""Definitions of a file: its functions and classes, and those of a script that does more.

What a script defines is kept where other statements of it fail, or train a model.
"""

import __future__

import ast
import inspect
import os
import re
import sys
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from attentest.results.text import summary

NAMESPACE = "_target_"
"""The first word of the names of modules that are made from files of users."""

LEFT_OUT = "__left_out__"
"""The name in a module of the statements that were not run: their lines, and why."""


UNDEFINED = "__undefined__"
"""The name in a module of the classes of modules whose statements failed: by name, and why."""


_PREPARING = (
    *("logging.", "warnings.", "sys.path.append", "sys.path.insert", "random.seed"),
    *("np.random.seed", "numpy.random.seed", "torch.manual_seed", "torch.cuda.manual_seed"),
)
"""The calls by which such a file may say how messages are shown, what is found and drawn."""
_HARMLESS = (
    *("device", "is_available", "getLogger", "get_logger", "TypeVar", "namedtuple", "NewType"),
)
"""Functions that a file of definitions may call when it is imported."""


def definitions(module: ModuleType) -> Iterator[tuple[str, Any]]:
    """Yield the public classes and functions that `module` defines, undecorated, by their names.

    Where it has none, these are the private ones, as in a course that calls its own `_Adam`.
    """
    found = []
    for name, thing in list(vars(module).items()):
        plain = undecorated(thing)
        written = inspect.isclass(plain) or inspect.isfunction(plain)
        if written and not name.startswith("__") and plain.__module__ == module.__name__:
            found.append((name, plain))
    public = [one for one in found if not one[0].startswith("_")]
    yield from public or found


def undecorated(thing: Any) -> Any:
    """Return the function that `thing` is made of, by `jax.jit` for instance; or `thing` itself."""
    if not callable(thing) or inspect.isclass(thing):
        return thing
    try:
        return inspect.unwrap(thing)
    except Exception:  # an object that has every attribute, such as `unittest.mock.call`
        return thing


def is_script(module: ModuleType, files: Collection[str], partial: str, source: bytes) -> bool:
    """Say whether the definitions of a module alone are run: in a `partial` attempt, or a script.

    A script trains: a loop of it goes backwards. Only the `files` that are looked at may be some.
    """
    if partial or module.__name__ not in files:
        return bool(partial)
    try:
        return any(_is_training(one) for one in ast.parse(source).body)
    except (SyntaxError, ValueError):
        return False


def _is_training(node: ast.stmt) -> bool:
    calls = [one.func for one in ast.walk(node) if isinstance(one, ast.Call)]
    return isinstance(node, ast.For | ast.While) and any(
        getattr(one, "attr", "") == "backward" for one in calls
    )


def run_definitions(
    source: bytes,
    file: str,
    module: ModuleType,
    files: Collection[str] = (),
    *,
    alone: bool = False,
) -> None:
    """Run the statements of a file in `module`, each by itself, without those that raise.

    After the first of these, only those that define something are run, and no others at all where
    these `alone` are asked for. Raises what the first one raised where nothing is defined, or no
    class of modules by one of the `files` looked at.
    """
    space, left, undefined = vars(module), dict[int, str](), dict[str, str]()
    first: BaseException | None = None
    flags = 0
    for node in ast.parse(source, file).body:
        if isinstance(node, ast.ImportFrom) and node.module == "__future__":
            flags |= sum(getattr(__future__, one.name).compiler_flag for one in node.names)
        if _is_training(node):
            left[node.lineno] = "it trains a model"
        elif (alone and not defines(node)) or (left and not _defines(node, space)):
            left[node.lineno] = ""
        else:
            try:
                _run(node, file, flags, space)
            except (Exception, SystemExit) as failure:  # code that a user wrote may raise anything
                first = first or failure
                left[node.lineno] = summary(failure)
                if isinstance(node, ast.ClassDef) and _is_module(node, undefined):
                    undefined[node.name] = _reason(node, failure, left)
    space[LEFT_OUT] = left
    space[UNDEFINED] = {name: why for name, why in undefined.items() if name not in space}
    kept = _modules(module) if module.__name__ in files else definitions(module)
    if first is not None and not any(kept):
        raise first


def _run(node: ast.stmt, file: str, flags: int, space: dict[str, Any]) -> None:
    """Run a statement of a file in `space`; a name that an annotation alone needs may be missing.

    It may be that of a class of settings whose own statement failed.
    """
    for more in (0, __future__.annotations.compiler_flag):
        own = flags | more
        code = compile(ast.Module([node], []), file, "exec", own, dont_inherit=True)
        try:
            exec(code, space)
        except NameError:
            if own == flags | __future__.annotations.compiler_flag:
                raise
        else:
            return


def _reason(node: ast.ClassDef, failure: BaseException, left: Mapping[int, str]) -> str:
    """Return which line raised what a class is not defined for.

    Where a name is missing, that is the first statement which failed.
    """
    failed = ((line, why) for line, why in left.items() if why)
    own = node.lineno, left[node.lineno]
    line, why = next(failed) if isinstance(failure, NameError) else own
    return f"line {line} raised {why}"


def _is_module(node: ast.ClassDef, others: Collection[str]) -> bool:
    """Say whether a class is made of a class of modules by its name, or of one of the `others`."""
    bases = [getattr(one, "attr", getattr(one, "id", "")) for one in node.bases]
    return any(_MODULES.search(one) or one in others for one in bases)


_MODULES = re.compile(r"((?<!Data)Module|PreTrainedModel)$")
"""Last words of the names of classes of modules: libraries have their own, and others of data."""


def _modules(module: ModuleType) -> Iterator[type]:
    """Yield the classes of modules of torch that `module` defines."""
    for one in list(vars(module).values()):
        bases = one.__mro__ if isinstance(one, type) else ()
        own = getattr(one, "__module__", "") == module.__name__
        if own and any(base.__module__ == "torch.nn.modules.module" for base in bases):
            yield one


def _defines(node: ast.stmt, space: Mapping[str, Any]) -> bool:
    """Say whether a statement defines names without running what the file itself defines."""
    if not isinstance(node, _DEFINING):
        return False
    if isinstance(node, ast.Import | ast.ImportFrom | ast.FunctionDef | ast.ClassDef):
        return True
    calls = [one.func for one in ast.walk(node) if isinstance(one, ast.Call)]
    called = [space.get(getattr(one, "id", "")) for one in calls]
    return not any(getattr(one, "__module__", "") == space["__name__"] for one in called)


_DEFINING = (
    ast.Import,
    ast.ImportFrom,
    ast.FunctionDef,
    ast.ClassDef,
    ast.Assign,
    ast.AnnAssign,
    ast.If,
    ast.Try,
)


def defines(node: ast.stmt) -> bool:
    """Say whether a statement of a file does no work of its own when it is imported."""
    match node:
        case ast.Import() | ast.ImportFrom() | ast.FunctionDef() | ast.ClassDef():
            return True
        case ast.Expr(value=ast.Constant()):
            return True
        case ast.Expr(value=ast.Call(func=ast.Attribute() as called)):
            return ast.unparse(called).startswith(_PREPARING)
        case ast.If(test=ast.Compare(left=ast.Name(id="__name__"))):
            return True
        case ast.If(test=ast.Name(id="TYPE_CHECKING") | ast.Attribute(attr="TYPE_CHECKING")):
            return True
        case ast.Assign() | ast.AnnAssign():
            calls = [one.func for one in ast.walk(node) if isinstance(one, ast.Call)]
            names = [getattr(one, "attr", getattr(one, "id", "")) for one in calls]
            return all(one in _HARMLESS for one in names)
        case ast.Try():
            failed = [one for handler in node.handlers for one in handler.body]
            tried = [*node.body, *node.orelse, *node.finalbody]
            return all(map(defines, tried)) and all(defines(one) or _says(one) for one in failed)
    return False


def _says(node: ast.stmt) -> bool:
    """Say whether a statement does nothing, or only says that a package is missing."""
    match node:
        case ast.Pass() | ast.Raise(exc=None):
            return True
        case ast.Raise(exc=ast.Call(func=ast.Name(id="ImportError" | "ModuleNotFoundError"))):
            return True
        case ast.Expr(value=ast.Call(func=ast.Name(id="print") | ast.Attribute(attr="warning"))):
            return True
        case ast.Expr(value=ast.Call(func=ast.Attribute(attr="warn" | "info"))):
            return True
    return False


def left_out(module: ModuleType) -> list[str]:
    """Return what is assumed of a file, and of those it imports, whose statements are not all run.

    Of the others a line is named alone, with the name of the file.
    """
    said = []
    for one in parts_with_failures(module):
        left: Mapping[int, str] = vars(one).get(LEFT_OUT, {})
        line, why = next((line, why) for line, why in left.items() if why)
        others = f", and {len(left) - 1} statements more" if len(left) > 1 else ""
        file = "its file" if one is module else Path(str(one.__file__)).name
        said.append(
            f"assumed that it does without the statements of {file} that cannot be run here, that "
            f"of line {line} ({why}){others}: what the file defines is judged"
        )
    return said


def uncompiled(module: ModuleType) -> list[str]:
    """Return what is assumed of a file that asks torch to compile, where nothing is compiled."""
    if os.environ.get("TORCHDYNAMO_DISABLE") != "1":
        return []
    try:
        asks = b"torch.compile" in Path(str(module.__file__)).read_bytes()
    except OSError:
        return []
    said = (
        "assumed that torch.compile changes no number: nothing is compiled, and "
        "TORCHDYNAMO_DISABLE=0 judges what is"
    )
    return [said] * asks


def parts_with_failures(module: ModuleType) -> list[ModuleType]:
    """Return the modules of which a statement failed: `module`, and those that it imports from.

    These are of its own namespace, each after what imports it.
    """
    found, top = [module], module.__name__.partition(".")[0]
    for one in found if top.startswith(NAMESPACE) else ():
        for value in list(vars(one).values()):
            name = value.__name__ if isinstance(value, ModuleType) else _home_of(value)
            part = sys.modules.get(name) if name.partition(".")[0] == top else None
            if part is not None and part not in found:
                found.append(part)
    return [one for one in found if any(vars(one).get(LEFT_OUT, {}).values())]


def _home_of(value: Any) -> str:
    """Return the name of the module that defines a class or function, "" for another value."""
    plain = value if inspect.isclass(value) or inspect.isfunction(value) else None
    return str(getattr(plain, "__module__", ""))
