"""Global state of the process, compared and restored around every call of a backend.

A backend that changes any of it is reported, and the suite's own code, which runs in the same
process, is not affected.
"""

import copy
import copyreg
import gc
import os
import random
import signal
import sys
import warnings
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from typing import Any

import numpy as np

# What `signal.getsignal` wraps: it looks every handler up in an enumeration, in 80 times the time.
_handler: Callable[[int], Any] = getattr(import_module("_signal"), "getsignal", signal.getsignal)

_COLLECT_AFTER = 10_000
"""Number of new objects after which Python looks for unused ones: its own is 700."""

_SIGNALS = (
    signal.SIGINT,
    signal.SIGTERM,
    signal.SIGHUP,
    signal.SIGALRM,
    signal.SIGCHLD,
    signal.SIGUSR1,
    signal.SIGUSR2,
)
"""The signals whose handlers are compared: those that programs handle."""


@contextmanager
def restore_changes(changed: set[str]) -> Iterator[None]:
    """Restore all state that is changed inside, and add its name to `changed`."""
    before = _values()
    try:
        yield
    finally:
        if _values() != before:
            changed |= set(_restored(before))


def _values() -> list[Any]:
    return [read() for read, _ in _SETTINGS.values()]


def _restored(before: Sequence[Any]) -> Iterator[str]:
    """Restore what is not as it was `before`, and yield its name."""
    for (name, (read, write)), value in zip(_SETTINGS.items(), before, strict=True):
        if read() != value:
            yield name
            # What cannot be restored (a deleted folder, another thread) is still reported.
            with suppress(OSError, ValueError, TypeError):
                write(value)


def collect_rarely() -> None:
    """Look for unused objects less often, and not among the many that are there by now.

    Code that builds modules all the time spends a tenth of its time on that.
    """
    gc.freeze()
    gc.set_threshold(_COLLECT_AFTER)


def copy_modules_faster() -> None:
    """Let `copy` and `pickle` take an OrderedDict apart without a search for its slots.

    Python repeats that search for each of them, as a class of its own cannot hold the result. A
    module of torch has ten, most of them empty: that is half of the time of its deep copy.
    """
    copyreg.pickle(OrderedDict, _taken_apart)
    deep_copies: dict[type, Any] = getattr(copy, "_deepcopy_dispatch", {})
    deep_copies[OrderedDict] = _deep_copy


def _deep_copy(one: OrderedDict[Any, Any], memo: dict[int, Any]) -> OrderedDict[Any, Any]:
    """Return what `copy.deepcopy` makes of an OrderedDict, attributes first."""
    made: OrderedDict[Any, Any] = OrderedDict()
    memo[id(one)] = made
    if attributes := vars(one):
        vars(made).update(copy.deepcopy(attributes, memo))
    for key, value in one.items():
        made[copy.deepcopy(key, memo)] = copy.deepcopy(value, memo)
    return made


def _taken_apart(one: OrderedDict[Any, Any]) -> tuple[Any, ...]:
    """Return what `OrderedDict.__reduce__` returns."""
    return OrderedDict, (), vars(one) or None, None, iter(one.items())


def advance_random_states() -> dict[str, Any]:
    """Return the states of the generators that Python and NumPy share, each advanced by one draw.

    Advanced, so that setting the seed that was set before shows as well.
    """
    random.random()
    np.random.random()
    return read_random_states()


def read_random_states() -> dict[str, Any]:
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
    return tuple(map(_handler, _SIGNALS)), signal.pthread_sigmask(signal.SIG_BLOCK, ())


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
"""The state that is compared, as functions that read and restore it."""
