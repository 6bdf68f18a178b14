"""The module `importlib` as the code of one folder sees it."""

import importlib
import importlib.metadata
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

Home = Callable[[str, Mapping[str, Any]], str]
"""A function of a top name and the global names of a module: the namespace that holds the name."""

_UNKNOWN = "0"
"""The version of a package that lies in the folder and is not installed."""


class Importlib(ModuleType):
    """The module `importlib`, whose `import_module` looks in the namespaces first."""

    def __init__(self, folder: Path, home: Home) -> None:
        super().__init__("importlib", importlib.__doc__)
        self.__spec__ = importlib.__spec__
        self._home = home
        self.metadata = Metadata(folder)

    def __getattr__(self, name: str) -> Any:
        return getattr(importlib, name)

    def import_module(self, name: str, package: str | None = None) -> ModuleType:
        """Import `name`, with the modules of the folder first."""
        home = "" if name.startswith(".") else self._home(name.partition(".")[0], {})
        return importlib.import_module(f"{home}.{name}" if home else name, package)


class Metadata(ModuleType):
    """The module `importlib.metadata`, in which the packages of the folder have a version, too."""

    def __init__(self, folder: Path) -> None:
        super().__init__("importlib.metadata", importlib.metadata.__doc__)
        self.__spec__ = importlib.metadata.__spec__
        self._folder = folder

    def __getattr__(self, name: str) -> Any:
        return getattr(importlib.metadata, name)

    def version(self, distribution_name: str) -> str:
        """Return the version of what is installed, "0" for a package of the folder that is not."""
        try:
            return importlib.metadata.version(distribution_name)
        except importlib.metadata.PackageNotFoundError:
            own = distribution_name.replace("-", "_")
            if any((self._folder / one).is_dir() for one in {own, own.lower()}):
                return _UNKNOWN
            raise
