"""A program that is asked one line at a time, whatever it does.

Everything is read and written in one place, without threads: what it writes to its standard error
is taken off its hands while it is waited for, and no line that it does not read can block.
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
"""Bytes that one answer may have."""

FAREWELL = b'{"id": 0, "do": "stop"}\n'
"""The last line that a program is sent; nobody reads its answer."""

PATIENCE = 1.0
"""Seconds that a program has to end, once it was asked to or has closed its standard output."""

_TAIL = 2000
_PIECE = 2**16


class ProgramFailure(Exception):
    """A program that did not answer as the protocol demands; the text says what it did."""


class Silence(ProgramFailure):
    """A program that did not answer in time."""


class Pipe:
    """One running program, and the pipes to it."""

    def __init__(self, command: Sequence[str]) -> None:
        """Start `command`; ProgramFailure where it cannot be started."""
        self._heard = bytearray()
        self._printed = b""
        try:
            # Of our process group: what ends a process with all its children ends this one too.
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
        """Send `line` and return the line that is answered, both without their ends.

        Raises Silence after `limit` seconds, and ProgramFailure where it ends or says too much.
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
                    raise Silence(f"no answer within {limit:g} seconds{self._stderr_tail()}")
                for key, _ in ready.select(left):
                    if key.fileobj is self._out:
                        self._hear()
                    elif key.fileobj is self._err:
                        self._drain(ready)
                    else:
                        unsent = self._send(unsent, ready)
        return answer

    def _line(self) -> bytes | None:
        """Take the first whole line out of what was heard; None where there is none yet."""
        # Only the last piece can hold the end of a line that was not there before.
        place = self._heard.find(b"\n", max(0, len(self._heard) - _PIECE))
        if place < 0:
            return None
        place = self._heard.find(b"\n")
        line = bytes(self._heard[:place])
        del self._heard[: place + 1]
        return line

    def _hear(self) -> None:
        piece = os.read(self._out.fileno(), _PIECE)
        if not piece:
            raise ProgramFailure(self._death())
        self._heard += piece
        if len(self._heard) > LONGEST:
            raise ProgramFailure(f"it wrote more than {LONGEST // 2**20} MiB without a line's end")

    def _drain(self, ready: selectors.BaseSelector) -> None:
        """Keep the end of what it prints, and throw the rest away."""
        piece = os.read(self._err.fileno(), _PIECE)
        self._printed = (self._printed + piece)[-_TAIL:]
        if not piece:
            ready.unregister(self._err)

    def _send(self, unsent: bytes, ready: selectors.BaseSelector) -> bytes:
        """Write as much as it takes, and return the rest."""
        with suppress(BrokenPipeError):  # that it ended is told once its output ends too
            unsent = unsent[os.write(self._in.fileno(), unsent[:_PIECE]) :]
            if unsent:
                return unsent
        ready.unregister(self._in)
        return b""

    def _death(self) -> str:
        """Say how the program ended by itself."""
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
                self._printed = (self._printed + piece)[-_TAIL:]
                if len(piece) == _PIECE:  # it may write faster than this reads
                    break
        lines = [one.strip() for one in self._printed.decode("utf-8", "replace").splitlines()]
        last = " / ".join([one for one in lines if one][-3:])
        return f"; its stderr ends: {last[-300:]}" if last else ""

    def stop(self) -> None:
        """Ask the program to stop and close its input; end it where it is still there.

        One that was ended before is left alone.
        """
        if self._in.closed:
            return
        with suppress(OSError):
            os.write(self._in.fileno(), FAREWELL)
        with suppress(OSError):
            self._in.close()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=PATIENCE)
        self.close()

    def close(self) -> None:
        """End the program, whatever it does."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._in, self._out, self._err):
            with suppress(OSError):
                pipe.close()
