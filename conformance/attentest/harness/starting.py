"""Starts child processes: forked from one that has imported what they need, where that is safe.

The first is started afresh, as most commands start no other, unless the server runs already; and so
is one for which the server would have to be started anew. This module imports nothing that takes
long: commands start the server before they are imported themselves.
"""

import atexit
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from importlib import import_module
from io import FileIO

MARK = "ATTENTEST_FAMILY"
"""The environment variable by which a child and all that it starts are found."""

UNMARKED = "0" * 32
"""The mark of a server, over which every child writes its own."""

NUMBER = 8
"""Bytes of a process id that a server sends, and of an exit status."""

_SERVER = "attentest.harness.fork_server"

POLL = 0.2
"""Seconds between two looks at whether to go on waiting."""

ONE_THREAD = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}

UNCOMPILED = {"TORCHDYNAMO_DISABLE": "1"}
"""Calls what `torch.compile` gets as it is written, unless a variable of the user says else.

It would be compiled anew for most shapes, for minutes, and no line of it could be followed.
"""

OFFLINE = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1"}
"""Files of a hub are those that are on this machine, unless a variable of the user says else.

Code that loads a tokenizer where it is imported would wait for a network, which may not be there.
"""

READ_AT_START = ("PYTHON", "LD_", "MALLOC_", "GLIBC_", "OMP_", "MKL_", "OPENBLAS_", "KMP_", "TORCH")
"""Prefixes of the variables that interpreters and libraries read when they start."""

_lock = threading.Lock()
_last: list[dict[str, str]] = []  # the settings of the child that was started last
_servers: list["ForkServer"] = []  # the last is the one in use


def start(
    module: str, mark: str, environment: Mapping[str, str], stop: threading.Event
) -> "subprocess.Popen[bytes] | Forked":
    """Start a process that answers by the METHODS of `module` and leads a session of its own.

    It has `environment` besides this process's, one thread for arithmetic, and `mark`, by which all
    that it starts is found. Raises Stopped once `stop` is set.
    """
    given = {**UNCOMPILED, **OFFLINE, **os.environ, **ONE_THREAD, **environment, MARK: mark}
    with _lock:
        again = [_settings()] == _last
        _last[:] = [_settings()]
        forkable = sys.platform == "linux" and again and not environment
        forked = _server().fork(module, given, stop) if forkable else None
    return forked or subprocess.Popen(
        [sys.executable, "-P", "-m", "attentest.harness.worker", module],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        bufsize=0,
        env=given,
        start_new_session=True,
    )


def prepare() -> None:
    """Start the server now: children are to come, and the first is forked, too."""
    if sys.platform == "linux":
        with _lock:
            _last[:] = [_settings()]
            _server()


class Forked:
    """A process that a fork server started: as much of :class:`subprocess.Popen` as is needed."""

    def __init__(self, pid: int, status: int, streams: Sequence[int]) -> None:
        """Take over the descriptors: `status`, from which the exit status comes, and `streams`."""
        self.pid = pid
        self.stdin, self.stdout, self.stderr = map(FileIO, streams, "wrr")
        self._status = status
        self._code: int | None = None

    def poll(self) -> int | None:
        """Return the exit status, None while the process runs."""
        return self._ended(0)

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the end of the process, and return its exit status."""
        code = self._ended(timeout)
        if code is None:
            raise subprocess.TimeoutExpired(str(self.pid), timeout or 0.0)
        return code

    def _ended(self, seconds: float | None) -> int | None:
        """Wait for the exit status; where the server has ended first, for the process itself."""
        if self._code is None and _readable(self._status, seconds):
            number = _number(self._status)
            if number is None and not _gone(self.pid, seconds):
                return None
            # Without its server its exit status is lost: most likely the server was killed.
            self._code = -signal.SIGKILL if number is None else number
            os.close(self._status)
        return self._code


class ForkServer:
    """A process that forks others, which share what it has imported; it ends with this one."""

    def __init__(self) -> None:
        self._owner = os.getpid()
        self._settings = _settings()
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self.process = subprocess.Popen(
                [sys.executable, "-P", "-m", _SERVER, str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env={**UNCOMPILED, **os.environ, **ONE_THREAD, MARK: UNMARKED},
                pass_fds=[theirs.fileno()],
                start_new_session=True,
            )
        atexit.register(self.end)

    def serves(self) -> bool:
        """Return whether it runs, and as one that were started now would."""
        ours = self._owner == os.getpid()
        return ours and self.process.poll() is None and self._settings == _settings()

    def fork(
        self, module: str, environment: Mapping[str, str], stop: threading.Event
    ) -> Forked | None:
        """Return a new process, None where the server cannot make it."""
        (their_in, our_in), *others = (os.pipe() for _ in range(4))
        ours = [our_in, *(read for read, _ in others)]
        theirs = [their_in, *(write for _, write in others)]
        with ExitStack() as opened:
            for one in ours:
                opened.callback(os.close, one)
            status = ours[-1]
            if not self._send(module, environment, theirs):
                return None
            while not _readable(status, POLL):
                if stop.is_set():
                    errors = import_module("attentest.harness.errors")  # imports take long here
                    raise errors.Stopped("the command was interrupted")
            pid = _number(status)
            if not pid:
                return None
            opened.pop_all()
            return Forked(pid, status, ours[:-1])

    def _send(self, module: str, environment: Mapping[str, str], streams: Sequence[int]) -> bool:
        """Send a request with the child's ends of the pipes, which are closed here."""
        try:
            asked = {"module": module, "environment": environment, "folder": os.getcwd()}
            socket.send_fds(self._control, [json.dumps(asked).encode()], streams)
        except OSError:  # it has ended, or its request is too long
            return False
        finally:
            for one in streams:
                os.close(one)
        return True

    def end(self) -> None:
        """End it, where this process has started it."""
        if self._owner == os.getpid():
            self._control.close()
            self.process.kill()
            self.process.wait()


def _settings() -> dict[str, str]:
    """Return the variables that a server has read and its children cannot read anew."""
    found = {name: value for name, value in os.environ.items() if name.startswith(READ_AT_START)}
    path = filter(None, found.get("PYTHONPATH", "").split(os.pathsep))
    return {**found, "PYTHONPATH": os.pathsep.join(map(os.path.abspath, path))}


def _server() -> ForkServer:
    """Return the server of this process, which is started where there is none."""
    if _servers and not _servers[-1].serves():
        _servers.pop().end()
    if not _servers:
        _servers.append(ForkServer())
    return _servers[-1]


def _readable(descriptor: int, seconds: float | None) -> bool:
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(None if seconds is None else seconds * 1000))


def _number(descriptor: int) -> int | None:
    """Read a number that the server has written; None where it has ended before."""
    read = os.read(descriptor, NUMBER)
    return int.from_bytes(read, "little", signed=True) if read else None


def _gone(pid: int, seconds: float | None) -> bool:
    """Wait for the end of a process that is no child of this one."""
    try:
        process = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return _readable(process, seconds)
    finally:
        os.close(process)
