"""Targets: what a user names on the command line, and the backend it leads to.

A target is the name of an announced backend, `file.py` or `file.py:object`, or `module:object`.
"""

import importlib
import importlib.util
import sys
from pathlib import Path
from types import ModuleType

from attentest.outcome import summary
from attentest_spec import Backend, registry
from attentest_spec.registry import LoadFailure, as_backend

DEFAULT_OBJECT = "backend"


def load(target: str) -> Backend:
    """Return the backend that `target` leads to.

    Raises UnknownName for a name that nothing announces and LoadFailure for what cannot be loaded.
    """
    if ":" not in target and not target.endswith(".py"):
        return registry.load(target)
    place, _, name = target.rpartition(":") if ":" in target else (target, "", "")
    module = _module(target, place or target)
    wanted = name or DEFAULT_OBJECT
    if not hasattr(module, wanted):
        raise LoadFailure(
            f"The target {target} could not be loaded: {place} has no object named {wanted!r}. "
            f"Write {place}:NAME with the name of a backend in it."
        )
    return as_backend(target, getattr(module, wanted))


def loader(target: str) -> str:
    """Return Python code that loads the backend of `target` without the suite."""
    if ":" not in target and not target.endswith(".py"):
        return f"registry.load({target!r})"
    place, _, name = target.rpartition(":") if ":" in target else (target, "", DEFAULT_OBJECT)
    if place.endswith(".py"):
        return f"__import__('runpy').run_path({place!r})[{name!r}]"
    return f"__import__('importlib').import_module({place!r}).{name}"


def _module(target: str, place: str) -> ModuleType:
    try:
        return _from_file(Path(place)) if place.endswith(".py") else importlib.import_module(place)
    except BaseException as failure:  # an import can raise anything, SystemExit included
        if isinstance(failure, KeyboardInterrupt):
            raise
        raise LoadFailure(
            f"The target {target} could not be loaded: {summary(failure)}."
        ) from failure


def _from_file(path: Path) -> ModuleType:
    """Import the file at `path`, its neighbours within reach."""
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}")
    found = importlib.util.spec_from_file_location(path.stem, path)
    if found is None or found.loader is None:
        raise ImportError(f"{path} is no Python file")
    module = importlib.util.module_from_spec(found)
    sys.path.insert(0, str(path.resolve().parent))
    sys.modules[path.stem] = module
    found.loader.exec_module(module)
    return module
