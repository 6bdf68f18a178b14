"""Targets: what a user names on the command line, and the backend it leads to.

A target is the name of an announced backend, `file.py` or `file.py:object`, `module:object`,
`paper` and the design choices of :mod:`attentest.targets.paper`, or `stdio:` and the command of a
program that speaks the protocol of :mod:`attentest_spec.stdio`.
For an object that is no backend an adapter is inferred. Every command, pytest and the Python
functions take the same targets; the last of these take live objects, too.
"""

import importlib
import importlib.util
import shlex
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from inspect import isclass
from pathlib import Path
from types import ModuleType
from typing import Any

from attentest.results.text import summary
from attentest.targets import definitions, file_modules, paper
from attentest.targets.imports.named_devices import on_cpu
from attentest.targets.origin import Origin, origin
from attentest_spec import Backend, UnknownName, registry
from attentest_spec.registry import LoadFailure, as_backend

DEFAULT_OBJECT = "backend"
PROGRAM = "stdio:"

ELSEWHERE = (
    "`attentest check` takes these options; for other commands and pytest, a file with the line "
    "`backend = attentest.adapted(..)` holds the same words, and its name is a target."
)
"""The advice on where to put the options that a question asks for."""


def load(target: str, reading: Mapping[str, Any] | None = None) -> Backend:
    """Return the backend that `target` leads to.

    `reading` holds what the user says of code that is no backend (see :class:`~.adapt.Reading`).
    Raises UnknownName for a name that nothing announces, and LoadFailure for a target that cannot
    be loaded or whose adapter cannot be inferred.
    """
    if paper.is_paper(target):
        return paper.load(target)
    if is_name(target):
        return registry.load(target)
    if target.startswith(PROGRAM):
        return _program(target)
    place, name = _place_and_name(target)
    return _read(target, _module(target, place), name, reading or {})


Target = Backend | Callable[..., Any] | str
"""The targets of Python functions: a backend, function, class or instance, or that of a command."""


def backend_of(target: Target, reading: Mapping[str, Any] | None = None) -> Backend:
    """Return `target` as a backend, with an inferred adapter where it is none.

    Raises as :func:`load` does.
    """
    if isinstance(target, str):
        return load(target, reading)
    return _adapted("", target, reading or {})


def _program(target: str) -> Backend:
    from attentest_spec.stdio import Program

    try:
        return Program(_command(target))
    except Exception as failure:  # a program may answer with any error
        raise LoadFailure(
            f"The target {target} could not be loaded: {summary(failure)}"
        ) from failure


def _command(target: str) -> list[str]:
    """Return the words of a program's command; LoadFailure where there are none."""
    try:
        words = shlex.split(target.removeprefix(PROGRAM))
    except ValueError as wrong:
        raise LoadFailure(f"The command of {target} cannot be read: {wrong}.") from wrong
    if not words:
        raise LoadFailure(f"{target} names no program; write {PROGRAM}COMMAND, in quotes.")
    return words


def _read(target: str, module: ModuleType, name: str, reading: Mapping[str, Any]) -> Backend:
    from attentest.targets.adapt.components import only_candidate

    if not name:
        name = DEFAULT_OBJECT if hasattr(module, DEFAULT_OBJECT) else only_candidate(target, module)
    return _adapted(target, _object(target, module, name), reading, name, module)


def _adapted(
    target: str,
    found: Any,
    reading: Mapping[str, Any],
    name: str = "",
    module: ModuleType | None = None,
) -> Backend:
    if isinstance(found, Backend) and not isclass(found):
        return found  # nothing is inferred, and torch need not be installed
    if target and not callable(found):
        return as_backend(target, found)
    from attentest.targets.adapt import Reading, Unclear
    from attentest.targets.adapt.adaptation import adapt

    try:
        made = adapt(found, Reading(**reading), name, module)
    except Unclear as question:
        names_options = "--" in str(question)
        if reading.keys() - {"strict"} or not target or not names_options:
            raise
        raise Unclear(f"{question} {ELSEWHERE}") from question
    return made if module is None else _with_failing_packages(made, module)


def _with_failing_packages(made: Backend, module: ModuleType) -> Backend:
    """Return `made` with an assumption for each package, and a file, that fails in part."""
    from attentest.targets.adapt.adaptation import Adapted
    from attentest.targets.whole import AdaptedWhole

    said = tuple(
        f"assumed that it does without what the package {name} imports, which fails here: {why}"
        for name, why in file_modules.failing_packages(module).items()
    )
    said += (*definitions.left_out(module), *definitions.uncompiled(module), *on_cpu(module))
    if not said or not isinstance(made, Adapted | AdaptedWhole):
        return made
    understood = (*made.understood[:1], *said, *made.understood[1:])
    return replace(made, assumed=(*made.assumed, *said), understood=understood)


def is_name(target: str) -> bool:
    """Say whether `target` is the name of an announced backend: no file, object or choices."""
    return ":" not in target and not target.endswith(".py") and not paper.is_paper(target)


def is_whole(target: str) -> bool:
    """Say whether `target` is a file or a module, and no object in it is named."""
    if target.startswith(PROGRAM) or ":" in target or paper.is_paper(target):
        return False
    return target.endswith(".py") or (target not in registry.names() and _is_module(target))


def _is_module(name: str) -> bool:
    """Say whether `name` can be imported, from the working directory too."""
    if not all(part.isidentifier() for part in name.split(".")):
        return False
    _search_working_directory()
    try:
        return importlib.util.find_spec(name) is not None
    except (ImportError, ValueError):
        return False


def module_of(target: str) -> ModuleType:
    """Return the module that `target` leads to; LoadFailure where it cannot be imported."""
    return _module(target, _place_and_name(target)[0])


def loader(target: str) -> str:
    """Return Python code that loads the backend of `target`, and calls it `backend`."""
    if paper.is_paper(target):
        return f"import attentest\n\nbackend = attentest.adapted({target!r})"
    if is_name(target):
        return f"from attentest_spec import registry\n\nbackend = registry.load({target!r})"
    if target.startswith(PROGRAM):
        words = shlex.split(target.removeprefix(PROGRAM))
        return f"from attentest_spec.stdio import Program\n\nbackend = Program({words!r})"
    place, name = _place_and_name(target)
    return _definition(origin(None, _module(target, place), name or DEFAULT_OBJECT))


def loader_of(backend: Backend) -> str:
    """Return Python code that names the live object `backend`, as far as that can be written."""
    if backend.name in registry.names() and registry.load(backend.name) == backend:
        return loader(backend.name)
    return _definition(origin(backend))


def _definition(found: Origin) -> str:
    own = [] if found.expression == "backend" else ["", f"backend = {found.expression}"]
    return "\n".join([*found.imports, *own])


def _place_and_name(target: str) -> tuple[str, str]:
    """Return the file or module of `target`, and the object in it ("" for none)."""
    if ":" not in target:
        return target, ""
    place, _, name = target.rpartition(":")
    return place or target, name


def _object(target: str, module: ModuleType, name: str) -> object:
    """Return the object `name` of `module`; LoadFailure with the nearest names for none."""
    found: object = module
    for part in name.split("."):
        if not hasattr(found, part):
            place, _ = _place_and_name(target)
            public = [one for one in vars(module) if not one.startswith("_")]
            raise LoadFailure(
                f"The target {target} could not be loaded. In {place}: "
                f"{UnknownName('object', part, public)} Write {place}:NAME with a name in it."
            )
        found = getattr(found, part)
    return found


def _module(target: str, place: str) -> ModuleType:
    try:
        return file_modules.load(Path(place)) if place.endswith(".py") else _named(place)
    except BaseException as failure:  # an import can raise anything, SystemExit included
        if isinstance(failure, KeyboardInterrupt):
            raise
        why = file_modules.public_names(summary(failure))
        raise LoadFailure(f"The target {target} could not be loaded: {why}.") from failure


def _named(place: str) -> ModuleType:
    """Import the module `place`, from the working directory too, as `python -m` does."""
    _search_working_directory()
    return importlib.import_module(place)


def _search_working_directory() -> None:
    if "" not in sys.path and str(Path.cwd()) not in sys.path:
        sys.path.append(str(Path.cwd()))
