"""One job in a process of its own, which may hang, crash or print as it likes.

The child writes its answer to a file and to nothing else: no pipe can be filled or held open.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

Job = Mapping[str, Any]

POLL = 0.2
"""Seconds between two looks at whether the child is still waited for."""


class Stopped(Exception):
    """The run is given up: its process is ended, and nothing more is asked of its backend."""


class Interrupted(Exception):
    """The process did not finish; the text says how it ended."""


def asked(
    module: str, job: Job, limit: float, stop: threading.Event | None = None
) -> dict[str, Any]:
    """Return what `module`, run in a child, answers to `job` within `limit` seconds.

    The module calls :func:`answer`. Raises :class:`Interrupted` where the child hangs, dies or says
    something else, and :class:`Stopped` once `stop` is set.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "answer.json"
        given = json.dumps({**job, "answer": str(path)})
        how = _ended(module, given, limit, stop or threading.Event())
        try:
            found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            raise Interrupted(f"its process {how}") from None
    return found


def answer(answered: Callable[[Job], Job]) -> None:
    """Read the job, write what is `answered`, and leave without the target's farewells."""
    job = json.loads(sys.stdin.read())
    path = Path(job["answer"])
    part = path.with_suffix(".part")
    part.write_text(json.dumps(answered(job)), encoding="utf-8")
    part.rename(path)
    os._exit(0)


def _ended(module: str, job: str, limit: float, stop: threading.Event) -> str:
    """Run a child with `job` to its end, and say how it ended."""
    child = subprocess.Popen(
        [sys.executable, "-m", module],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"},
        start_new_session=True,
    )
    end = time.monotonic() + limit
    unsent: bytes | None = job.encode()
    try:
        while not _communicated(child, unsent, min(POLL, limit)):
            unsent = None  # `communicate` holds what the child has not read yet
            if stop.is_set():
                raise Stopped
            if time.monotonic() > end:
                return f"gave no answer within {limit:g} seconds"
    finally:
        with suppress(OSError):  # its children are of its group
            os.killpg(child.pid, signal.SIGKILL)
        child.wait()
    return f"ended with exit code {child.returncode}"


def _communicated(child: subprocess.Popen[bytes], job: bytes | None, seconds: float) -> bool:
    """Give the child its job; say whether it has ended within `seconds`."""
    try:
        child.communicate(job, timeout=seconds)
    except subprocess.TimeoutExpired:
        return False
    return True
