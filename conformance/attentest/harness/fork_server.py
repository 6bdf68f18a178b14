"""The program that forks child processes, all from one process that has imported what they need.

`python -P -m attentest.harness.fork_server DESCRIPTOR` takes requests from that socket: the module
whose methods a child answers, its environment and its folder, and with them the child's standard
streams and a pipe. Into that it writes the child's process id, and once the child has ended its
exit status. A child that cannot be forked safely gets no process id.
"""

import ctypes
import gc
import json
import os
import select
import selectors
import socket
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from importlib import import_module, invalidate_caches
from typing import Any, NoReturn

import numpy as np

from attentest.harness import worker
from attentest.harness.process_state import collect_rarely
from attentest.harness.starting import MARK, NUMBER, UNMARKED

LONGEST = 2**17
"""Bytes of the longest request."""

PRELOADED = "torch"
"""The package that most backends import, and that takes longest."""

_STREAMS = 3
_ENVIRONMENT = slice(47, 49)  # its bounds, in the fields of /proc/PID/stat after the name


class Server:
    """Serves the requests that come on `control`, until its parent and all children have ended."""

    def __init__(self, control: socket.socket) -> None:
        self._control = control
        self._selector = selectors.PollSelector()
        self._listen(control.fileno(), self._take)

    def run(self) -> None:
        """Serve; this does not return in a child."""
        while self._selector.get_map():
            for key, _ in self._selector.select():
                key.data()

    def _listen(self, descriptor: int, action: Callable[[], None]) -> None:
        self._selector.register(descriptor, selectors.EVENT_READ, action)

    def _forget(self, descriptor: int) -> None:
        self._selector.unregister(descriptor)
        os.close(descriptor)

    def _take(self) -> None:
        """Take a request and fork; or take no more, where the parent has ended."""
        text, given, _, _ = socket.recv_fds(self._control, LONGEST, _STREAMS + 1)
        if not text:
            self._forget(self._control.detach())
            return
        *streams, status = given
        if _abandoned(status):
            for one in given:
                os.close(one)
            return
        request = json.loads(text)
        _import(request["module"])  # where it fails, the child says what is wrong with it
        pid = _fork()
        if pid == 0:
            self._control.detach()
            _be_child(request, streams)
        for one in streams:
            os.close(one)
        if pid is None:
            os.close(status)
            return
        _send(status, pid)
        ended = os.pidfd_open(pid)
        self._listen(ended, partial(self._report, pid, ended, status))

    def _report(self, pid: int, ended: int, status: int) -> None:
        """Send how a child ended."""
        _send(status, os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
        os.close(status)
        self._forget(ended)


def _fork() -> int | None:
    """Fork where this process has one thread: a copy of another would hold its locks for ever."""
    if len(os.listdir("/proc/self/task")) > 1:
        return None
    gc.freeze()
    return os.fork()


def _abandoned(status: int) -> bool:
    """Return whether the parent no longer waits for the child: it was interrupted or has ended."""
    poll = select.poll()
    poll.register(status, 0)
    return bool(poll.poll(0))


def _send(status: int, number: int) -> None:
    with suppress(OSError):  # the parent has ended
        os.write(status, number.to_bytes(NUMBER, "little", signed=True))


def _be_child(request: Mapping[str, Any], streams: Sequence[int]) -> NoReturn:
    """Be what `python -m attentest.harness.worker MODULE` is."""
    os.setsid()
    for number, one in enumerate(streams):
        os.dup2(one, number)
    os.closerange(_STREAMS, os.sysconf("SC_OPEN_MAX"))
    os.environ.clear()
    os.environ.update(request["environment"])
    _write_mark(os.environ[MARK])
    os.chdir(request["folder"])
    if not os.environ.get("PYTHONSAFEPATH"):
        sys.path.insert(0, os.getcwd())
    invalidate_caches()
    np.random.seed()
    os._exit(_exit_status(partial(worker.main, request["module"])))


def _exit_status(program: Callable[[], None]) -> int:
    """Run `program` and return the exit status that Python gives it.

    Python itself would also take down all that is loaded, which takes a second.
    """
    status: Any = None
    try:
        program()
    except SystemExit as end:
        status = end.code
    except BaseException:
        traceback.print_exc()
        status = 1
    if status is not None and not isinstance(status, int):
        print(status, file=sys.stderr)
        status = 1
    sys.stdout.flush()
    sys.stderr.flush()
    return status or 0


def _write_mark(mark: str) -> None:
    """Write `mark` where other processes read it: over that of the server, in the same memory."""
    with open("/proc/self/stat", encoding="utf-8", errors="replace") as file:
        begin, end = map(int, file.read().rpartition(")")[2].split()[_ENVIRONMENT])
    place = ctypes.string_at(begin, end - begin).find(f"{MARK}={UNMARKED}".encode())
    ctypes.memmove(begin + place + len(MARK) + 1, mark.encode(), len(mark))


def _import(package: str) -> None:
    with suppress(Exception):
        import_module(package)


def main(descriptor: int) -> None:
    """Import what takes long, and serve."""
    collect_rarely()
    _import(PRELOADED)
    Server(socket.socket(fileno=descriptor)).run()


if __name__ == "__main__":
    main(int(sys.argv[1]))
