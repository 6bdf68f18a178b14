"""The pipes of a child process: lines to it, lines from it, and the tail of its stderr."""

import os
import selectors
import subprocess
from collections.abc import Callable
from contextlib import suppress

from attentest.harness.starting import Forked

LONGEST = 2**28
"""Bytes of the longest line that is read."""

_PIECE = 2**16
_TAIL = 2000


class Pipes:
    """The pipes to and from a child; data moves while :meth:`wait` runs and never later.

    `closed` says that no more lines come.
    """

    def __init__(self, process: "subprocess.Popen[bytes] | Forked") -> None:
        self._pipes = (process.stdin, process.stdout, process.stderr)
        self._in, self._out, self._error = (one.fileno() for one in self._pipes if one)
        self._selector = selectors.DefaultSelector()
        self._register(self._out, self._read_lines)
        self._register(self._error, self._read_tail)
        os.set_blocking(self._in, False)
        self._outgoing = b""
        self._incoming = bytearray()
        self._searched = 0
        self.tail = b""
        self.closed = False

    def _register(self, descriptor: int, move: Callable[[], bool]) -> None:
        os.set_blocking(descriptor, False)
        self._selector.register(descriptor, selectors.EVENT_READ, move)

    def send(self, text: str) -> None:
        """Send a line; what the pipe does not take at once is sent while answers are awaited."""
        if not self._outgoing:
            self._selector.register(self._in, selectors.EVENT_WRITE, self._write)
        self._outgoing += text.encode() + b"\n"
        self._write()

    def line(self) -> bytes | None:
        """Return the next line that has come as a whole, if any."""
        end = self._incoming.find(b"\n", self._searched)
        if end < 0:
            self._searched = len(self._incoming)
            return None
        found = bytes(self._incoming[:end])
        del self._incoming[: end + 1]
        self._searched = 0
        return found

    @property
    def overlong(self) -> bool:
        """Whether the line that has begun is longer than any that the suite writes."""
        return len(self._incoming) > LONGEST

    def wait(self, seconds: float) -> bool:
        """Wait until something can be read or sent, and do; say whether there was anything."""
        moved = [key.data() for key, _ in self._selector.select(seconds)]
        return any(moved)

    def close(self) -> None:
        """Close all of them."""
        self._selector.close()
        for pipe in self._pipes:
            with suppress(OSError):
                if pipe is not None:
                    pipe.close()

    def _write(self) -> bool:
        try:
            sent = os.write(self._in, self._outgoing[:_PIECE])
        except BlockingIOError:
            return False
        except OSError:  # it is dead, and how it ended is reported
            sent = len(self._outgoing)
        self._outgoing = self._outgoing[sent:]
        if not self._outgoing:
            self._selector.unregister(self._in)
        return sent > 0

    def _read_lines(self) -> bool:
        piece = self._read(self._out)
        self._incoming += piece
        self.closed = self.closed or not piece
        return bool(piece)

    def _read_tail(self) -> bool:
        piece = self._read(self._error)
        self.tail = (self.tail + piece)[-_TAIL:]
        return bool(piece)

    def _read(self, descriptor: int) -> bytes:
        """Return what has come; at the end of the pipe nothing, and it is listened to no more."""
        piece = os.read(descriptor, _PIECE)
        if not piece:
            self._selector.unregister(descriptor)
        return piece
