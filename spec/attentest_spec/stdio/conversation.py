"""The requests to a program and its answers, one at a time."""

import json
import shlex
import weakref
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, TypeVar

from attentest_spec.contract import Unsupported
from attentest_spec.stdio.pipe import NoAnswer, Pipe, ProgramFailure

PROTOCOL = 1
"""The version of the protocol; a program with another version is refused."""

ERRORS: Mapping[str, type[Exception]] = {
    "value": ValueError,
    "index": IndexError,
    "type": TypeError,
    "unsupported": Unsupported,
    "internal": RuntimeError,
}
"""The exceptions for the kinds of errors that a program answers with."""

_MOST_UNANSWERED = 3

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
        self._unanswered = 0
        self._forgotten: list[int] = []
        self.starts = 0

    @property
    def alive(self) -> bool:
        """Whether a process is running."""
        return self._pipe is not None

    def start(self) -> None:
        """Start the program if it is not running; refuse if it gave no answer too often."""
        if self._pipe is not None:
            return
        if self._unanswered >= _MOST_UNANSWERED:
            raise self._failure(
                f"it gave no answer {self._unanswered} times and is not started again"
            )
        try:
            pipe = Pipe(self._command)
        except ProgramFailure as failure:
            raise self._failure(str(failure)) from failure
        self._pipe, self._forgotten = pipe, []
        weakref.finalize(self, pipe.stop)  # at the end of this process, if not before
        self.starts += 1
        answer = self.ask("start", protocol=PROTOCOL)
        if answer.get("protocol") != PROTOCOL:
            spoken = answer.get("protocol")
            self._drop()
            raise self._failure(f"its protocol is {spoken!r}, and the protocol here is {PROTOCOL}")

    def describe(self) -> dict[str, Any]:
        """Start the program and return its description."""
        self.start()
        return self.ask("describe")

    def ask(self, do: str, **fields: Any) -> dict[str, Any]:
        """Return the answer to one request.

        Raises the exception of an answered error, and ProgramFailure where there is no answer; the
        program is ended then, because its next lines could belong to any request.
        """
        if self._forgotten and do != "release":
            parts, self._forgotten = self._forgotten, []
            with suppress(*ERRORS.values()):  # a program may keep them until it ends
                self.ask("release", parts=parts)
        if self._pipe is None:
            raise self._failure("it has ended")
        self._number += 1
        request = json.dumps({"id": self._number, "do": do, **fields})
        try:
            answer = self._answer(self._pipe.ask(request.encode(), self.limit))
        except BaseException as failure:  # after Ctrl-C an answer is still to come
            self._unanswered += isinstance(failure, NoAnswer)
            self._drop()
            if isinstance(failure, ProgramFailure):
                raise self._failure(f"asked to {do}, {failure}") from None
            raise
        if (error := answer.get("error")) is not None:
            raise self.read(lambda: ERRORS[error["kind"]](str(error["message"])))
        return answer

    def _answer(self, line: bytes) -> dict[str, Any]:
        """Parse a line; raise ProgramFailure if it is not the answer to the current request."""
        try:
            answer = json.loads(line)
        except (ValueError, RecursionError):
            answer = None
        if not isinstance(answer, dict) or "id" not in answer:
            shown = line[:80].decode("utf-8", "replace")
            raise ProgramFailure(
                f"it wrote {shown!r}, which is not an answer; its standard output is for answers "
                f"alone, everything else belongs on standard error"
            )
        if answer["id"] != self._number:
            raise ProgramFailure(
                f"it answered request {answer['id']!r} instead of request {self._number}"
            )
        return answer

    def read(self, parse: Callable[[], T]) -> T:
        """Return the result of `parse`, and raise ProgramFailure where an answer is malformed.

        The program goes on: its answer was complete.
        """
        try:
            return parse()
        except (LookupError, TypeError, ValueError) as wrong:
            lacks = f"it lacks {wrong}" if type(wrong) is KeyError else str(wrong)
            raise self._failure(f"its answer is malformed: {lacks}") from wrong

    def forget(self, handle: int, start: int) -> None:
        """Have the program release a part before the next request."""
        if start == self.starts:
            self._forgotten.append(handle)

    def close(self) -> None:
        """Request the program to stop, and kill it if it does not."""
        if self._pipe is not None:
            self._pipe.stop()
            self._pipe = None

    def _drop(self) -> None:
        if self._pipe is not None:
            self._pipe.close()
            self._pipe = None

    def _failure(self, what: str) -> ProgramFailure:
        return ProgramFailure(f"The program {shlex.join(self._command)}: {what}.")
