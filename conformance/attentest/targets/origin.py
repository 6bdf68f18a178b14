"""The place that an object of a user comes from, as code that imports it."""

import importlib.util
import inspect
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from keyword import iskeyword
from pathlib import Path
from types import ModuleType
from typing import Any

from attentest.targets import definitions, file_modules
from attentest.targets.imports.added_paths import is_installed
from attentest.targets.imports.named_devices import named_cuda


@dataclass(frozen=True)
class Origin:
    """The code that names an object: `expression`, after the statements `imports`.

    `imports` is a comment where an object exists in the running process alone.
    """

    expression: str
    imports: tuple[str, ...] = ()


def origin(thing: Any, module: ModuleType | None = None, name: str = "") -> Origin:
    """Return how `thing` is named in code: as `name` in `module`, or wherever it can be found."""
    if written := getattr(thing, "written_as", ""):  # set by what calls code with arrays
        found = origin(thing.__wrapped__, module, name)
        needed = f"from attentest_spec.torch import {written.partition('(')[0]}"
        return Origin(written.format(found.expression), (*found.imports, needed))
    if module is not None:
        return _import_of(module, name)
    for home, path in _places(thing):
        if home.__name__ != "__main__" and _at(home, path) is thing:
            return _import_of(home, path)
    return _live(thing)


def _places(thing: Any) -> Iterator[tuple[ModuleType, str]]:
    """Yield the modules that may hold `thing`, with its name in them."""
    home = sys.modules.get(getattr(thing, "__module__", None) or "")
    path = getattr(thing, "__qualname__", "")
    if home is not None and path:
        yield home, path
    if not inspect.isclass(thing) and not inspect.isroutine(thing):
        for module in list(sys.modules.values()):
            held = getattr(module, "__dict__", {})
            yield from ((module, one) for one, value in list(held.items()) if value is thing)


def _at(home: ModuleType, path: str) -> Any:
    found: Any = home
    for part in path.split("."):
        found = getattr(found, part, None)
    return found


def _live(thing: Any) -> Origin:
    """Return how an object is named that nothing can import: by the name that its author uses."""
    main = vars(sys.modules["__main__"])
    held = next((one for one, value in list(main.items()) if value is thing), "")
    own = held or getattr(thing, "__name__", "") or type(thing).__name__
    own = own if own.isidentifier() else "yours"
    kind = (
        "class" if inspect.isclass(thing) else "function" if inspect.isroutine(thing) else "object"
    )
    return Origin(own, (f"# {own}: your {kind}; run this where it is defined",))


def _import_of(module: ModuleType, name: str) -> Origin:
    """Return how `name` is imported from `module`, where CUDA has to be another device, too."""
    found = _plain_import_of(module, name)
    if named_cuda(module) is None:
        return found
    ignored = ("from attentest_spec.torch.missing_cuda import ignore_names", "", "ignore_names()")
    return Origin(name, (*ignored, *found.imports))


def _plain_import_of(module: ModuleType, name: str) -> Origin:
    """Return how `name` is imported from `module`."""
    file = getattr(module, "__file__", None)
    top = name.partition(".")[0]
    if file is None or not file.endswith(".py"):
        return Origin(name, (f"from {module.__name__} import {top}",))
    private = file_modules.is_private(module.__name__)
    root, dotted = file_modules.importable(Path(file)) if private else _public(module, Path(file))
    if is_installed(root):
        return Origin(name, (f"from {dotted} import {top}",))
    parts = _execution_of_parts(root, module)
    if left := vars(module).get(definitions.LEFT_OUT):
        known = _can_be_imported(root, dotted, Path(file))
        at = (root, dotted) if known else None
        return Origin(name, (*parts, *_execution_of(Path(file), top, tuple(left), at)))
    if parts:
        return Origin(name, (*parts, f"from {dotted} import {top}"))
    if private and not _can_be_imported(root, dotted, Path(file)):
        return Origin(name, _execution_of(Path(file), top))
    path = ("import sys", "", f"sys.path.insert(0, {str(root)!r})")
    return Origin(name, (*path, f"from {dotted} import {top}"))


def _public(module: ModuleType, file: Path) -> tuple[Path, str]:
    """Return the folder from which `module` is imported under the name that it has."""
    place = file.resolve()
    up = module.__name__.count(".") + (place.stem == "__init__")
    return place.parents[up], module.__name__


def _can_be_imported(root: Path, dotted: str, file: Path) -> bool:
    """Say whether an import of `dotted` gives `file` where `root` comes first on the path."""
    names = dotted.split(".")
    if not all(one.isidentifier() and not iskeyword(one) for one in names):
        return False
    if names[0] in sys.stdlib_module_names or file.stem not in (names[-1], "__init__"):
        return False
    known = sys.modules.get(names[0])
    spec = importlib.util.find_spec(names[0]) if known is None else known.__spec__
    other = None if spec is None else spec.origin
    return other is None or Path(other).resolve().is_relative_to(root)


def _execution_of_parts(root: Path, module: ModuleType) -> tuple[str, ...]:
    """Return code that runs the files which `module` imports and of which a statement fails.

    Nothing is returned where there are none. They are imported from `root`.
    """
    parts = [one for one in definitions.parts_with_failures(module) if one is not module]
    if not parts:
        return ()
    runs = []
    for one in reversed(parts):
        name, left = one.__name__.partition(".")[2], tuple(vars(one)[definitions.LEFT_OUT])
        runs += [f"    ({name!r}, {str(one.__file__)!r}, {left}),"]
    return (
        *("import ast", "import importlib.util", "import sys", ""),
        f"sys.path.insert(0, {str(root)!r})",
        *("for name, file, left in [", *runs, "]:"),
        "    spec = importlib.util.spec_from_file_location(name, file)",
        "    sys.modules[name] = importlib.util.module_from_spec(spec)",
        '    tree = ast.parse(open(file, "rb").read())',
        "    tree.body = [one for one in tree.body if one.lineno not in left]",
        '    exec(compile(tree, file, "exec"), vars(sys.modules[name]))',
        "",
    )


def _execution_of(
    file: Path, top: str, left: tuple[int, ...] = (), at: tuple[Path, str] | None = None
) -> tuple[str, ...]:
    """Return code that runs `file` as a module of its own, whatever it is called.

    The statements of the lines `left` are left out. Where it can be imported `at` a folder, by a
    dotted name, it runs under that name, so that it finds the other files of its package.
    """
    path = repr(str(file.resolve()))
    folder, own = at or (file.resolve().parent, "your_file")
    put = f"sys.path.insert(0, {str(folder)!r})" if at else f"sys.path.append({str(folder)!r})"
    run = (
        f'tree = ast.parse(open({path}, "rb").read())',
        f"tree.body = [one for one in tree.body if one.lineno not in {left}]",
        f'exec(compile(tree, {path}, "exec"), vars(your_file))',
    )
    return (
        *(("import ast",) if left else ()),
        "import importlib.util",
        "import sys",
        "",
        put,
        f"spec = importlib.util.spec_from_file_location({own!r}, {path})",
        "your_file = importlib.util.module_from_spec(spec)",
        "sys.modules[spec.name] = your_file",
        *(run if left else ("spec.loader.exec_module(your_file)",)),
        f"{top} = your_file.{top}",
    )
