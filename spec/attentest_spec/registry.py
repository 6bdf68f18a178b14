"""The registry of the backends that installed distributions announce."""

import sys
from functools import lru_cache
from importlib.metadata import EntryPoint, PackageNotFoundError, distribution, entry_points
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from packaging.utils import canonicalize_name

from attentest_spec.contract import Backend
from attentest_spec.names import UnknownName

if TYPE_CHECKING:
    from packaging.requirements import Requirement

GROUP = "attentest.backends"
"""The entry-point group; an entry names a backend object, or a callable that returns one."""

EXTRA = "library"
"""The extra of a distribution that brings the library which all of its backends are for."""


class LoadFailure(Exception):
    """A backend that is announced and cannot be loaded; the message gives the reason."""


class NotInstalled(LoadFailure):
    """A backend whose adapter is installed and whose library is not; the message says how to."""


def names() -> list[str]:
    """Return the names of all announced backends, sorted."""
    return list(_announced())


def installed() -> list[str]:
    """Return the names of the backends whose library is installed, sorted; imports nothing."""
    entries = _announced()
    return [name for name in names() if not _lacking(entries[name])]


def not_installed() -> dict[str, str]:
    """Return the backends whose library is missing, with the command that installs it."""
    entries = _announced()
    return {name: _command(entries[name]) for name in names() if _lacking(entries[name])}


def install_command(name: str) -> str:
    """Return the command that installs the library of the backend `name`, "" if it is installed.

    Raises :class:`UnknownName` when no backend is announced as `name`.
    """
    entry = _entry(name)
    return _command(entry) if _lacking(entry) else ""


def home(name: str) -> str:
    """Return the module that the backend `name` is imported from; imports nothing.

    Raises :class:`UnknownName` when no backend is announced as `name`.
    """
    return _entry(name).module


def load(name: str) -> Backend:
    """Import and return the backend announced as `name`.

    Raises :class:`UnknownName` for an unknown name, :class:`NotInstalled` where its library is
    missing, and :class:`LoadFailure` where it cannot be imported or is not a backend.
    """
    return _imported(name, _entry(name))


def _announced() -> dict[str, EntryPoint]:
    """Return the entries by their names, sorted; of several with one name, the first.

    They are read again once a folder of packages has changed: it takes tens of milliseconds.
    """
    folders = [Path(one or ".") for one in sys.path]
    return _read(tuple((one, one.stat().st_mtime_ns) for one in folders if one.exists()))


@lru_cache(1)
def _read(_: tuple[tuple[Path, int], ...]) -> dict[str, EntryPoint]:
    """Return the entries as they are in the folders of packages."""
    found: dict[str, EntryPoint] = {}
    for entry in entry_points(group=GROUP):
        found.setdefault(entry.name, entry)
    return dict(sorted(found.items()))


def _entry(name: str) -> EntryPoint:
    announced = _announced()
    if name not in announced:
        raise UnknownName("backend", name, list(announced))
    return announced[name]


def _imported(name: str, entry: EntryPoint) -> Backend:
    try:
        loaded = entry.load()
        if callable(loaded) and not isinstance(loaded, Backend):
            loaded = loaded()
    except BaseException as failure:  # an import can raise anything, SystemExit included
        if isinstance(failure, KeyboardInterrupt):
            raise
        if isinstance(failure, ModuleNotFoundError) and (lacked := _lacked(entry, failure)):
            raise NotInstalled(
                f"The backend {name} needs {lacked}, which is not installed. "
                f"Install it with: {_command(entry)}"
            ) from failure
        reason = " ".join(f"{type(failure).__name__}: {failure}".split())
        raise LoadFailure(
            f"The backend {name} ({entry.value}) could not be loaded: {reason}. "
            f"Import {entry.module} in Python to see the whole traceback."
        ) from failure
    return as_backend(name, loaded)


def as_backend(name: str, loaded: object) -> Backend:
    """Return `loaded` if it is a backend; raise :class:`LoadFailure` if it is not."""
    if isinstance(loaded, Backend):
        return loaded
    missing = [
        word
        for word in ("name", "title", "choices", "limits", "components", "build")
        if not hasattr(loaded, word)
    ]
    raise LoadFailure(
        f"The backend {name} is a {type(loaded).__name__} that lacks {', '.join(missing)}. "
        f"A backend meets attentest_spec.Backend; attentest_spec.torch.TorchBackend makes one "
        f"out of torch modules."
    )


def _command(entry: EntryPoint) -> str:
    assert entry.dist is not None  # only a distribution can have an extra
    return f'pip install "{entry.dist.name}[{EXTRA}]"'


def _lacked(entry: EntryPoint, failure: ModuleNotFoundError) -> str:
    """Return the missing library that `failure` names, "" where it names something else."""
    module = canonicalize_name(failure.name or "")
    # A dotted name is a missing module of an installed library, and not a missing library.
    known = [] if "." in (failure.name or ".") else _lacking(entry)
    return next((one for one in known if canonicalize_name(one) == module), "")


def _lacking(entry: EntryPoint) -> list[str]:
    """Return the missing requirements of the extra of the entry's distribution."""
    from packaging.requirements import Requirement  # a tenth of a second, which few need

    requires = (entry.dist.requires if entry.dist else None) or ()
    asked = [Requirement(one) for one in requires]
    plain = {canonicalize_name(one.name) for one in asked if _applies(one, "")}
    wanted = [one.name for one in asked if _applies(one, EXTRA)]
    return [one for one in wanted if canonicalize_name(one) not in plain and not _there(one)]


def _applies(requirement: "Requirement", extra: str) -> bool:
    return requirement.marker is None or requirement.marker.evaluate({"extra": extra})


def _there(library: str) -> bool:
    """Say whether `library` is installed, or importable as a module of the same name."""
    try:
        return bool(distribution(library))
    except PackageNotFoundError:
        return find_spec(canonicalize_name(library).replace("-", "_")) is not None
