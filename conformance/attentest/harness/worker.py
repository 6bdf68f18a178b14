"""The program of a child process: answers calls by the methods of a module.

`python -m attentest.harness.worker MODULE` serves the METHODS of MODULE, and ends with its parent.
Standard input brings calls for as long as the parent lives; what was standard output when the
process started carries messages to it. Before anything of a backend is imported, standard output
is joined to stderr and standard input is emptied, so that nothing that a backend prints or reads
reaches those pipes.
"""

import ctypes
import os
import sys
import threading
from contextlib import suppress
from importlib import import_module
from io import TextIOWrapper
from queue import SimpleQueue

from attentest.harness import messages
from attentest.harness.compiler import postpone_compiler
from attentest.harness.family import Family
from attentest.harness.messages import Methods
from attentest.harness.process_state import collect_rarely, copy_modules_faster
from attentest.harness.starting import MARK

_SET_CHILD_SUBREAPER = 36


def serve(methods: Methods) -> None:
    """Answer calls by `methods`, one after the other, until the parent is gone."""
    channel = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    if isinstance(sys.stdout, TextIOWrapper):  # the last line of one that dies is reported
        sys.stdout.reconfigure(line_buffering=True)

    def send(text: str) -> None:
        channel.write(text + "\n")
        channel.flush()

    calls: SimpleQueue[str] = SimpleQueue()
    threading.Thread(target=_listen, args=[os.dup(0), calls], daemon=True).start()
    with open(os.devnull, "rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    while True:
        send(messages.answer(methods, calls.get(), lambda event: send(messages.event(event))))


def _listen(pipe: int, calls: "SimpleQueue[str]") -> None:
    """Take calls until the parent is gone, then end this process with all that it started."""
    family = Family(os.getpid(), os.environ.get(MARK, ""))
    with open(pipe, encoding="utf-8") as lines:
        for one in lines:
            calls.put(one)
    family.end()
    os._exit(1)


def adopt_orphans() -> None:
    """Become the parent of descendants that lose theirs, so that they are found (on Linux)."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def main(module: str) -> None:
    """Answer by the METHODS of `module`; what it runs gets no arguments of this program."""
    del sys.argv[1:]
    adopt_orphans()
    collect_rarely()  # imports make many objects, and all of them stay
    copy_modules_faster()
    postpone_compiler()
    serve(import_module(module).METHODS)


if __name__ == "__main__":
    # Only now, as in a fork: a file of the user's may have the name of a standard module.
    if not os.environ.get("PYTHONSAFEPATH"):
        sys.path.insert(0, os.getcwd())
    main(sys.argv[1])
