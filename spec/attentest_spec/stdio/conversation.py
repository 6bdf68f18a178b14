"""What is said to a program behind the contract, one request and one answer at a time."""

import json
import shlex
import weakref
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, TypeVar

from attentest_spec.contract import Unsupported
from attentest_spec.stdio.pipe import Pipe, ProgramFailure, Silence

PROTOCOL = 1
"""The version of the protocol; a program that speaks another one is refused."""

ERRORS: Mapping[str, type[Exception]] = {
    "value": ValueError,
    "index": IndexError,
    "type": TypeError,
    "unsupported": Unsupported,
    "internal": RuntimeError,
}
"""What the kinds of errors that a program answers with become."""

_SILENCES = 3

T = TypeVar("T")


class Conversation:
    """The requests to one program and its answers.

    `limit` is the time one answer may take, in seconds, and `starts` counts the processes.
    """

    def __init__(self, command: Sequence[str], limit: float) -> None:
        self._command = list(command)
        self.limit = limit
        self._pipe: Pipe | None = None
        self._number = 0
        self._silences = 0
        self._forgotten: list[int] = []
        self.starts = 0

    @property
    def alive(self) -> bool:
        """Whether a process is there to be asked."""
        return self._pipe is not None

    def wake(self) -> None:
        """Start the program where it is not there; refuse where it was silent too often."""
        if self._pipe is not None:
            return
        if self._silences >= _SILENCES:
            raise self._failed(f"it gave no answer {self._silences} times and is asked no more")
        try:
            pipe = Pipe(self._command)
        except ProgramFailure as failure:
            raise self._failed(str(failure)) from failure
        self._pipe, self._forgotten = pipe, []
        weakref.finalize(self, pipe.stop)  # at the end of this process, if not before
        self.starts += 1
        told = self.ask("start", protocol=PROTOCOL)
        if told.get("protocol") != PROTOCOL:
            spoken = told.get("protocol")
            self._drop()
            raise self._failed(f"it speaks protocol {spoken!r}, and this is protocol {PROTOCOL}")

    def described(self) -> dict[str, Any]:
        """Start the program and return what it says of itself."""
        self.wake()
        return self.ask("describe")

    def ask(self, do: str, **said: Any) -> dict[str, Any]:
        """Return the answer to one request.

        Raises what an answered error stands for, and ProgramFailure for anything else than an
        answer; the program is ended then, because nobody knows what it would say next.
        """
        if self._forgotten and do != "release":
            parts, self._forgotten = self._forgotten, []
            with suppress(*ERRORS.values()):  # a program may as well keep them until it ends
                self.ask("release", parts=parts)
        if self._pipe is None:
            raise self._failed("it has ended")
        self._number += 1
        request = json.dumps({"id": self._number, "do": do, **said})
        try:
            answer = self._answer(self._pipe.ask(request.encode(), self.limit))
        except BaseException as failure:  # Ctrl-C leaves an answer on its way
            self._silences += isinstance(failure, Silence)
            self._drop()
            if isinstance(failure, ProgramFailure):
                raise self._failed(f"asked to {do}, {failure}") from None
            raise
        if (error := answer.get("error")) is not None:
            raise self.agreed(lambda: ERRORS[error["kind"]](str(error["message"])))
        return answer

    def _answer(self, line: bytes) -> dict[str, Any]:
        """Read an answer; raise ProgramFailure for a line that is none, or not this request's."""
        try:
            told = json.loads(line)
        except (ValueError, RecursionError):
            told = None
        if not isinstance(told, dict) or "id" not in told:
            shown = line[:80].decode("utf-8", "replace")
            raise ProgramFailure(
                f"it wrote {shown!r}, which is no answer; its standard output is for answers "
                f"alone, everything else belongs on standard error"
            )
        if told["id"] != self._number:
            raise ProgramFailure(f"it answered {told['id']!r}, and request {self._number} was put")
        return told

    def agreed(self, read: Callable[[], T]) -> T:
        """Return what `read` makes of an answer, and raise ProgramFailure for what it should not.

        The program goes on: its answer is wrong and complete.
        """
        try:
            return read()
        except (LookupError, TypeError, ValueError) as wrong:
            lacks = f"it lacks {wrong}" if type(wrong) is KeyError else str(wrong)
            raise self._failed(f"its answer is not well formed: {lacks}") from wrong

    def forget(self, handle: int, start: int) -> None:
        """Have the program let go of a part before it is asked anything else."""
        if start == self.starts:
            self._forgotten.append(handle)

    def close(self) -> None:
        """Ask the program to stop, and end it where it does not."""
        if self._pipe is not None:
            self._pipe.stop()
            self._pipe = None

    def _drop(self) -> None:
        if self._pipe is not None:
            self._pipe.close()
            self._pipe = None

    def _failed(self, what: str) -> ProgramFailure:
        return ProgramFailure(f"The program {shlex.join(self._command)}: {what}.")
