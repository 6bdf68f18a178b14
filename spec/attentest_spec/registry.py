"""The registry: where backends announce themselves and are found."""

from importlib.metadata import EntryPoint, entry_points

from attentest_spec.contract import Backend
from attentest_spec.names import UnknownName

GROUP = "attentest.backends"
"""The entry-point group; an entry names a backend object, or a callable that returns one."""


class LoadFailure(Exception):
    """A backend that is there and cannot be loaded; its text is one paragraph with the reason."""


def names() -> list[str]:
    """Return the names of all announced backends, sorted."""
    return sorted({entry.name for entry in entry_points(group=GROUP)})


def load(name: str) -> Backend:
    """Import and return the backend announced as `name`.

    Raises :class:`UnknownName` when none is, and :class:`LoadFailure` when it cannot be imported
    or is no backend.
    """
    entries = [entry for entry in entry_points(group=GROUP) if entry.name == name]
    if not entries:
        raise UnknownName("backend", name, names())
    return _imported(name, entries[0])


def _imported(name: str, entry: EntryPoint) -> Backend:
    try:
        loaded = entry.load()
        if callable(loaded) and not isinstance(loaded, Backend):
            loaded = loaded()
    except BaseException as failure:  # an import can raise anything, SystemExit included
        if isinstance(failure, KeyboardInterrupt):
            raise
        reason = " ".join(f"{type(failure).__name__}: {failure}".split())
        raise LoadFailure(
            f"The backend {name} ({entry.value}) could not be loaded: {reason}. "
            f"Import {entry.module} in Python to see the whole traceback."
        ) from failure
    return as_backend(name, loaded)


def as_backend(name: str, loaded: object) -> Backend:
    """Return `loaded` as a backend, and raise :class:`LoadFailure` when it is none."""
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
