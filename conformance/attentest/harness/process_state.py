"""What all code of a process shares: looked at before and after a backend has its turn.

A backend that changes any of it is found out, and the suite's own code, which goes on in the same
process, finds it as it was.
"""

import os
import random
import signal
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

import numpy as np

_SIGNALS = (
    signal.SIGINT,
    signal.SIGTERM,
    signal.SIGHUP,
    signal.SIGALRM,
    signal.SIGCHLD,
    signal.SIGUSR1,
    signal.SIGUSR2,
)
"""The signals whose handlers are looked at: those that programs handle."""


@contextmanager
def watched(changed: set[str]) -> Iterator[None]:
    """Set back whatever is changed inside, and add its name to `changed`."""
    before = {name: look() for name, (look, _) in _SETTINGS.items()}
    try:
        yield
    finally:
        for name, (look, put) in _SETTINGS.items():
            if look() != before[name]:
                changed.add(name)
                # What cannot be set back (a folder that is gone, outside the main thread) is told.
                with suppress(OSError, ValueError, TypeError):
                    put(before[name])


def random_states() -> dict[str, Any]:
    """Return the states of the generators that Python and NumPy share, each moved on by one draw.

    Moved on, so that a seed that is set to what it was set to before is seen as well.
    """
    random.random()
    np.random.random()
    return look_at_random_states()


def look_at_random_states() -> dict[str, Any]:
    """Return the states of the generators that Python and NumPy share."""
    name, keys, *rest = np.random.get_state(legacy=True)
    return {
        "random state of Python": random.getstate(),
        "random state of NumPy": (name, keys.tobytes(), *rest),  # type: ignore[union-attr]
    }


def _directory() -> str:
    try:
        return os.getcwd()
    except OSError:
        return ""


def _handlers() -> tuple[Any, ...]:
    return tuple(map(signal.getsignal, _SIGNALS)), signal.pthread_sigmask(signal.SIG_BLOCK, ())


def _set_handlers(before: tuple[Any, ...]) -> None:
    handlers, mask = before
    signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    for number, handler in zip(_SIGNALS, handlers, strict=True):
        with suppress(TypeError):  # one that was not set from Python cannot be set again
            signal.signal(number, handler)


def _set_path(before: list[str]) -> None:
    sys.path[:] = before


def _set_filters(before: list[Any]) -> None:
    warnings.filters[:] = before  # type: ignore[index]
    getattr(warnings, "_filters_mutated", lambda: None)()


def _set_streams(before: tuple[Any, ...]) -> None:
    sys.stdin, sys.stdout, sys.stderr = before


_SETTINGS: Mapping[str, tuple[Callable[[], Any], Callable[[Any], Any]]] = {
    "working directory": (_directory, os.chdir),
    "sys.path": (lambda: list(sys.path), _set_path),
    "warnings filters": (lambda: list(warnings.filters), _set_filters),
    "signal handlers": (_handlers, _set_handlers),
    "alarm": (
        lambda: signal.getitimer(signal.ITIMER_REAL)[0] > 0,
        lambda _: signal.setitimer(signal.ITIMER_REAL, 0),
    ),
    "standard streams": (lambda: (sys.stdin, sys.stdout, sys.stderr), _set_streams),
    "recursion limit": (sys.getrecursionlimit, sys.setrecursionlimit),
    "NumPy error handling": (np.geterr, lambda before: np.seterr(**before)),
}
"""What is watched: how it is looked at and how it is set back."""
