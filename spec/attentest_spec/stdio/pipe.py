"""A process with pipes: one line in, one line out, and no way for it to block the caller.

One loop reads and writes, without threads: standard error is read while an answer is awaited, and
a line that the process does not read cannot block.
"""

import os
import selectors
import signal
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import IO, cast

LONGEST = 2**26
"""The most bytes that one answer may have."""

STOP = b'{"id": 0, "do": "stop"}\n'
"""The last request; its answer is not read."""

PATIENCE = 1.0
"""Seconds that a program has to end, once it was asked to or has closed its standard output."""

_TAIL = 2000
_PIECE = 2**16


class ProgramFailure(Exception):
    """A program that broke the protocol; the message says how."""


class NoAnswer(ProgramFailure):
    """A program that did not answer in time."""


class Pipe:
    """A running program and the pipes to it."""

    def __init__(self, command: Sequence[str]) -> None:
        """Start `command`; raise ProgramFailure if that is impossible."""
        self._received = bytearray()
        self._stderr_end = b""
        try:
            # In our process group: whoever kills this process with its children kills that one too.
            self._process = subprocess.Popen(
                list(command),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
            )
        except (OSError, ValueError) as failure:
            raise ProgramFailure(f"it could not be started: {failure}") from failure
        self._in, self._out, self._err = (
            cast(IO[bytes], pipe)
            for pipe in (self._process.stdin, self._process.stdout, self._process.stderr)
        )
        for pipe in (self._in, self._out, self._err):
            os.set_blocking(pipe.fileno(), False)

    def ask(self, line: bytes, limit: float) -> bytes:
        """Send `line` and return the answered line, both without the line ending.

        Raises NoAnswer after `limit` seconds, and ProgramFailure where the program ends or its
        answer is too long.
        """
        unsent = line + b"\n"
        end = time.monotonic() + limit
        with selectors.DefaultSelector() as ready:
            ready.register(self._in, selectors.EVENT_WRITE)
            ready.register(self._out, selectors.EVENT_READ)
            ready.register(self._err, selectors.EVENT_READ)
            while (answer := self._line()) is None:
                left = end - time.monotonic()
                if left <= 0:
                    raise NoAnswer(f"no answer within {limit:g} seconds{self._stderr_tail()}")
                for key, _ in ready.select(left):
                    if key.fileobj is self._out:
                        self._read_output()
                    elif key.fileobj is self._err:
                        self._read_stderr(ready)
                    else:
                        unsent = self._send(unsent, ready)
        return answer

    def _line(self) -> bytes | None:
        """Take the first whole line from what was received; None if there is none."""
        # Only the last piece can have a new line ending.
        place = self._received.find(b"\n", max(0, len(self._received) - _PIECE))
        if place < 0:
            return None
        place = self._received.find(b"\n")
        line = bytes(self._received[:place])
        del self._received[: place + 1]
        return line

    def _read_output(self) -> None:
        piece = os.read(self._out.fileno(), _PIECE)
        if not piece:
            raise ProgramFailure(self._ending())
        self._received += piece
        if len(self._received) > LONGEST:
            raise ProgramFailure(f"it wrote more than {LONGEST // 2**20} MiB without a line's end")

    def _read_stderr(self, ready: selectors.BaseSelector) -> None:
        """Keep the end of standard error, and discard the rest."""
        piece = os.read(self._err.fileno(), _PIECE)
        self._stderr_end = (self._stderr_end + piece)[-_TAIL:]
        if not piece:
            ready.unregister(self._err)

    def _send(self, unsent: bytes, ready: selectors.BaseSelector) -> bytes:
        """Write as much as the pipe takes, and return the rest."""
        with suppress(BrokenPipeError):  # reported once its output ends too
            unsent = unsent[os.write(self._in.fileno(), unsent[:_PIECE]) :]
            if unsent:
                return unsent
        ready.unregister(self._in)
        return b""

    def _ending(self) -> str:
        """Return how the program ended, as a part of a sentence."""
        try:
            code = self._process.wait(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            return "it closed its standard output" + self._stderr_tail()
        names = {one.value: one.name for one in signal.Signals}
        how = f"exit code {code}" if code >= 0 else names.get(-code, f"signal {-code}")
        return f"it ended with {how}{self._stderr_tail()}"

    def _stderr_tail(self) -> str:
        """Return the last lines of its standard error, as the end of a sentence."""
        with suppress(BlockingIOError):
            while piece := os.read(self._err.fileno(), _PIECE):
                self._stderr_end = (self._stderr_end + piece)[-_TAIL:]
                if len(piece) == _PIECE:  # it may write faster than this reads
                    break
        lines = [one.strip() for one in self._stderr_end.decode("utf-8", "replace").splitlines()]
        last = " / ".join([one for one in lines if one][-3:])
        return f"; its stderr ends: {last[-300:]}" if last else ""

    def stop(self) -> None:
        """Request the program to stop and close its input; kill it if it goes on.

        Does nothing for a program that has been stopped.
        """
        if self._in.closed:
            return
        with suppress(OSError):
            os.write(self._in.fileno(), STOP)
        with suppress(OSError):
            self._in.close()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=PATIENCE)
        self.close()

    def close(self) -> None:
        """Kill the program."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._in, self._out, self._err):
            with suppress(OSError):
                pipe.close()
