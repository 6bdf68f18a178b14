"""Postpones the import of torch's compiler, which takes as long as that of torch itself.

The optimisers of torch import it for two functions that change nothing where no code is compiled.
A placeholder has these two until anything else of the compiler is used, and imports it then.
"""

import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any

COMPILER = "torch._dynamo"


def postpone_compiler() -> None:
    """Let torch's compiler be imported where it is used, and not where it is named."""
    if COMPILER not in sys.modules and not any(isinstance(one, _Finder) for one in sys.meta_path):
        sys.meta_path.insert(0, _Finder())


class _Finder(MetaPathFinder):
    """Finds the placeholder of the compiler, once."""

    used = False

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname == COMPILER and not self.used:
            self.used = True
            real = PathFinder.find_spec(fullname, path)
            return real and ModuleSpec(fullname, _PlaceholderLoader(real))
        if fullname.startswith(f"{COMPILER}.") and fullname in sys.modules:
            return ModuleSpec(fullname, _LoadedPart(sys.modules[fullname]))
        return None


class _PlaceholderLoader(Loader):
    """Makes the placeholder of the compiler."""

    def __init__(self, real: ModuleSpec) -> None:
        self._real = real

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = _Placeholder(spec.name)
        module.__file__ = self._real.origin
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Execute nothing."""


class _LoadedPart(Loader):
    """Gives a part of the compiler that the import of the compiler has loaded already."""

    def __init__(self, module: ModuleType) -> None:
        self._module, self._spec = module, module.__spec__

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return self._module

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = self._spec


class _Placeholder(ModuleType):
    """Has what optimisers use of the compiler, and imports it where more of it is used."""

    def graph_break(self, msg: str = "") -> None:
        """Do nothing, as this function does where no code is compiled."""

    def disable(
        self, fn: Callable[..., Any] | None = None, recursive: bool = True, **options: Any
    ) -> Any:
        """Return `fn`, not to be compiled once the compiler is imported."""
        if fn is None:
            return _imported().disable(fn, recursive, **options)
        disabled: list[Callable[..., Any]] = []

        def call(*args: Any, **kwargs: Any) -> Any:
            if isinstance(sys.modules.get(COMPILER), _Placeholder):
                return fn(*args, **kwargs)
            if not disabled:
                disabled.append(_imported().disable(fn, recursive, **options))
            return disabled[0](*args, **kwargs)

        return call

    def __getattr__(self, name: str) -> Any:
        # The import system asks for such names, and code that looks through all modules.
        asked = ("__path__", "__all__") if COMPILER in sys.modules else ()
        if name.startswith("__") and name not in asked:
            raise AttributeError(f"module {COMPILER!r} has no attribute {name!r}")
        return getattr(_imported(), name)


def _imported() -> ModuleType:
    """Import the compiler, if it is not there."""
    if isinstance(sys.modules.get(COMPILER), _Placeholder):
        del sys.modules[COMPILER]
        parent, _, name = COMPILER.rpartition(".")
        vars(sys.modules[parent]).pop(name, None)  # its own modules are asked for in there
    return import_module(COMPILER)
