"""Backends that take part in a study, in this process or in one of their own.

A study gives its methods: functions of a loaded backend, with plain values in and out. A Local
participant calls them here; a Remote one calls them in a child process with limits, from which the
same values, and the same exceptions, come back.
"""

import sys
import warnings
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from threading import Event
from typing import Any, Protocol, TypeVar

import numpy as np

from attentest.harness.errors import Unavailable
from attentest.harness.messages import Listener, Methods
from attentest.harness.process import Child, Isolation, in_threads
from attentest.results.text import line, summary
from attentest.targets import resolve
from attentest_spec import Backend, UnknownName
from attentest_spec.registry import LoadFailure

K = TypeVar("K", bound=Hashable)
T = TypeVar("T")


class Participant(Protocol):
    """A backend that answers the methods of a study."""

    def call(self, method: str, listen: Listener | None = None, **arguments: Any) -> Any:
        """Return what `method` answers to `arguments`; `listen` is called with its events.

        Raises LoadFailure where the backend cannot be loaded, and Unavailable where it gives no
        answer.
        """


@dataclass(frozen=True)
class Local:
    """A participant in this process: what hangs or crashes takes the process along."""

    methods: Methods

    def call(self, method: str, listen: Listener | None = None, **arguments: Any) -> Any:
        """See :class:`Participant`."""
        return self.methods[method](**arguments, **({"tell": listen} if listen else {}))


@dataclass(frozen=True)
class Remote:
    """A participant in a process of its own, which answers by the METHODS of `module`.

    It has one target, or several that take part together. `reading` says how code that is no
    backend is to be read; the process has `environment` besides this one's.
    """

    module: str
    targets: tuple[str, ...]
    isolation: Isolation
    reading: Mapping[str, Any] | None = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)

    def call(self, method: str, listen: Listener | None = None, **arguments: Any) -> Any:
        """Ask in a fresh process; see :class:`Participant`."""
        with self.process() as child:
            return child.call(method, listen, **arguments)

    @contextmanager
    def process(self) -> Iterator[Child]:
        """Yield a process that has loaded the targets, itself a Participant."""
        with Child(self.module, self.isolation, self.environment) as child:
            child.call("load", targets=self.targets, reading=self.reading)
            child.seconds = self.isolation.seconds
            yield child


def on_target(methods: Callable[..., Methods]) -> Methods:
    """Return what a child answers: `load`, and then the `methods` of what it loaded."""
    table: dict[str, Callable[..., Any]] = {}

    def load(targets: Sequence[str], reading: Mapping[str, Any] | None) -> None:
        table.update(methods(*(loaded(one, reading) for one in targets)))

    table["load"] = load
    return table


def loaded(target: str, reading: Mapping[str, Any] | None) -> Backend:
    """Load a backend; how this process computes, warns and finds modules stays as it was.

    Raises LoadFailure where that cannot be done.
    """
    path = list(sys.path)
    try:
        with np.errstate(), warnings.catch_warnings():
            return resolve.load(target, reading)
    except (LoadFailure, UnknownName) as failure:
        raise LoadFailure(line(str(failure), 1000)) from failure
    except Exception as failure:  # looking at a backend runs code of its author
        raise LoadFailure(f"{target} could not be described: {summary(failure)}") from failure
    finally:
        sys.path = [*sys.path, *(folder for folder in path if folder not in sys.path)]


def ask(
    participant: Participant,
    method: str,
    read: Callable[[Any], T],
    listen: Listener | None = None,
    **arguments: Any,
) -> T:
    """Return the answer to `method` as `read` returns it; what it cannot read is Unavailable."""
    answer = participant.call(method, listen, **arguments)
    try:
        return read(answer)
    except Exception as failure:  # a process that is hostile may send any answer
        raise Unavailable(f"its answer cannot be read: {summary(failure)}") from failure


@dataclass(frozen=True)
class Failure:
    """A backend without a result, and why; `loaded` is False where it could not be loaded."""

    backend: str
    reason: str
    loaded: bool

    @classmethod
    def of(cls, backend: str, failure: Exception) -> "Failure":
        """Return what `failure` says of `backend`."""
        return cls(backend, str(failure), isinstance(failure, Unavailable))


def gather(
    actions: Mapping[K, Callable[[], T]],
    *,
    workers: int = 1,
    stop: Event | None = None,
    name: Callable[[K], str] = str,
) -> tuple[dict[K, T], list[Failure]]:
    """Return the results of the `actions` in their order, and the backends of those that failed.

    Each asks a backend, whose name is `name` of its key; `workers` of them run at a time. Ctrl-C
    and every exception besides LoadFailure, UnknownName and Unavailable set `stop` and end all.
    """

    def outcome(key: K) -> T | Failure:
        try:
            return actions[key]()
        except (LoadFailure, UnknownName, Unavailable) as failure:
            return Failure.of(name(key), failure)

    tried = {key: partial(outcome, key) for key in actions}
    outcomes = in_threads(tried, workers, stop or Event())
    answers = {key: one for key, one in outcomes.items() if not isinstance(one, Failure)}
    return answers, [one for one in outcomes.values() if isinstance(one, Failure)]
