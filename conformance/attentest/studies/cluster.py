"""Work that is handed to the workers of a Dask cluster, by default processes of this machine."""

import logging
import signal
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import CancelledError
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any, TypeVar

from attentest.harness.errors import Unavailable
from attentest.harness.messages import Listener
from attentest.results.optional import needed
from attentest.results.text import summary
from attentest.studies.participants import Remote

EXTRA = "sweep"
"""The extra of the suite with the libraries that workers need."""

AHEAD = 4
"""The number of tasks that are handed to the scheduler for each worker; the others wait."""

CONNECT = "10s"
"""The time in which a scheduler has to answer."""

LOSSES = 3
"""The number of workers that may be lost under one task before it fails."""

K = TypeVar("K")
T = TypeVar("T")


class NoScheduler(Exception):
    """No scheduler answers at an address, or no longer; its text is one sentence."""


@dataclass(frozen=True)
class Lost:
    """A task without a result: its workers were lost, or none could carry it out."""

    reason: str


@dataclass(frozen=True)
class Cluster:
    """A cluster that is connected to; `size` is the number of its workers."""

    distributed: Any
    client: Any
    size: int

    def each(
        self, function: Callable[..., T], tasks: Iterable[tuple[K, tuple[Any, ...]]]
    ) -> Iterator[tuple[K, T | Lost]]:
        """Yield the key of every task and what `function` returns of its inputs, as they end.

        A few tasks for each worker are with the scheduler, so that as many as there may be take no
        room there. An exception of the function is Lost, with its text.
        """
        rest = iter(tasks)
        keys: dict[str, K] = {}

        def submit(key: K, inputs: tuple[Any, ...]) -> Any:
            future = self.client.submit(function, *inputs, pure=False)
            keys[future.key] = key
            return future

        futures = self.distributed.as_completed(
            [submit(*one) for one in islice(rest, AHEAD * self.size)],
            loop=self.client.loop,
            raise_errors=False,
        )
        for future in futures:
            failure = future.exception()
            result = future.result() if failure is None else Lost(_lost(failure))
            key = keys.pop(future.key)
            future.release()
            for following in islice(rest, 1):
                futures.add(submit(*following))
            yield key, result

    def participant(self, remote: Remote) -> "Scheduled":
        """Return `remote` as a participant whose process is on a machine of the cluster."""
        return Scheduled(self.client, remote)


@dataclass(frozen=True)
class Scheduled:
    """A participant in a process that a worker of a cluster starts; its events stay there."""

    client: Any
    remote: Remote

    def call(self, method: str, listen: Listener | None = None, **arguments: Any) -> Any:
        """Ask there; see :class:`~attentest.studies.participants.Participant`."""
        unheard = _unheard if listen else None
        future = self.client.submit(
            partial(self.remote.call, method, unheard, **arguments), pure=False
        )
        failure = future.exception()
        if type(failure).__name__ == "KilledWorker":
            raise Unavailable(_lost(failure))
        return future.result()


def _unheard(event: Mapping[str, Any]) -> None:
    """Take an event that goes no further."""


@contextmanager
def cluster(workers: int, scheduler: str) -> Iterator[Cluster]:
    """Connect to the scheduler at an address, or start so many workers on this machine.

    Raises Missing where Dask is not installed and :class:`NoScheduler` where none answers, or where
    the connection to it is lost while the cluster is used.
    """
    distributed = needed("distributed", EXTRA)
    settings = {
        "distributed.scheduler.allowed-failures": LOSSES,
        "distributed.comm.timeouts.connect": CONNECT,
    }
    with needed("dask", EXTRA).config.set(settings), _quiet():
        if scheduler:
            try:
                client = distributed.Client(scheduler, set_as_default=False)
            except (OSError, ValueError) as failure:
                raise NoScheduler(
                    f"No scheduler answers at {scheduler}: {summary(failure)}."
                ) from failure
            with client:
                try:
                    yield _connected(distributed, client, 1)
                except (CancelledError, distributed.comm.CommClosedError) as failure:
                    raise NoScheduler(
                        f"The connection to the scheduler at {scheduler} was lost."
                    ) from failure
            return
        with _without_interruption():
            local = distributed.LocalCluster(
                n_workers=workers,
                threads_per_worker=1,
                dashboard_address="127.0.0.1:0",  # any free port: two commands may run at once
                silence_logs=logging.CRITICAL,
            )
        with local, distributed.Client(local, set_as_default=False) as client:
            yield _connected(distributed, client, workers)


def _connected(distributed: Any, client: Any, fewest: int) -> Cluster:
    return Cluster(
        distributed, client, max(fewest, len(client.scheduler_info(n_workers=-1)["workers"]))
    )


def _lost(failure: BaseException) -> str:
    if type(failure).__name__ == "KilledWorker":
        return f"{LOSSES + 1} workers were lost at it; out of memory, perhaps"
    return f"no worker could carry it out: {summary(failure)}"


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep to itself what the libraries log of connections that end: an interruption ends all."""
    loud = ("asyncio", "distributed", "distributed.client", "tornado")
    levels = {name: logging.getLogger(name).level for name in loud}
    for name in levels:
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        for name, level in levels.items():
            logging.getLogger(name).setLevel(level)


@contextmanager
def _without_interruption() -> Iterator[None]:
    """Start processes that Ctrl-C does not reach: this one ends them."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
