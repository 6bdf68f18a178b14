"""The child side of a worker process: reads the job, answers, and ends with its parent."""

import json
import os
import signal
import sys
import threading
from collections.abc import Callable
from io import TextIOWrapper
from queue import SimpleQueue
from typing import Any, TextIO

from attentest.results.text import plain_value


def serve(
    work: Callable[[dict[str, Any], TextIO], None],
    questions: "SimpleQueue[dict[str, Any]] | None" = None,
) -> None:
    """Read the job, `work`, and leave without running what a backend registered for the end.

    What the parent asks later is put into `questions`.
    """
    channel = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    if isinstance(sys.stdout, TextIOWrapper):  # the last words of one that dies are told
        sys.stdout.reconfigure(line_buffering=True)
    job = json.loads(sys.stdin.readline())
    heard = [os.dup(0), questions]
    threading.Thread(target=_leave_with_parent, args=heard, daemon=True).start()
    with open(os.devnull, "rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    work(job, channel)
    channel.close()
    os._exit(0)


def _leave_with_parent(pipe: int, questions: "SimpleQueue[dict[str, Any]] | None") -> None:
    """Listen until the parent is gone, then end this process with all its children."""
    with open(pipe, "rb") as lines:
        for one in lines:
            if questions is not None:
                questions.put(json.loads(one))
    if os.getpgrp() == os.getpid():
        os.killpg(os.getpid(), signal.SIGKILL)
    os._exit(1)


def tell(channel: TextIO, **message: Any) -> None:
    """Send one message to the parent."""
    channel.write(json.dumps(plain_value(message)) + "\n")
    channel.flush()
