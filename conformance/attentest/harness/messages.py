"""The messages between a process and its child: one JSON object a line.

| direction | message | meaning |
| --- | --- | --- |
| to the child | `{"call": NAME, "arguments": {..}, "listen": BOOL}` | call a method |
| to the parent | `{"type": "event", "event": {..}}` | progress, where it is listened to |
| to the parent | `{"type": "answer", "answer": ..}` | what the method returned |
| to the parent | `{"type": "error", "error": NAME, "reason": TEXT}` | what it raised |

Every call has exactly one answer or error, after its events.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any

from attentest.harness.errors import BadCheckpoint, NotConvertible, ProcessFailure, Unavailable
from attentest.results.output import Occupied
from attentest.results.text import line, summary
from attentest_spec.registry import LoadFailure

Event = Mapping[str, Any]
Listener = Callable[[Event], None]
"""Called with every event of a call."""

Methods = Mapping[str, Callable[..., Any]]
"""The methods that a child answers: functions of plain values by name.

One whose calls are listened to takes the listener as `tell`.
"""

ERRORS: Mapping[str, type[Exception]] = {
    one.__name__: one for one in (LoadFailure, Unavailable, Occupied, NotConvertible, BadCheckpoint)
}
"""The exceptions that a parent raises as its child did; all take one text."""

LONGEST_REASON = 10_000


def call(method: str, arguments: Mapping[str, Any], *, listen: bool) -> str:
    """Return the line of a call."""
    return json.dumps({"call": method, "arguments": arguments, "listen": listen})


def event(content: Event) -> str:
    """Return the line of an event."""
    return json.dumps({"type": "event", "event": content})


def answer(methods: Methods, text: str, tell: Listener) -> str:
    """Carry out the call in `text`; return the line of its answer, or of what it raised."""
    asked = json.loads(text)
    listener = {"tell": tell} if asked["listen"] else {}
    try:
        found = methods[asked["call"]](**asked["arguments"], **listener)
        return json.dumps({"type": "answer", "answer": found})
    except Exception as failure:  # the code of a backend may raise anything
        return json.dumps({"type": "error", **_error(failure)})


def _error(failure: Exception) -> dict[str, str]:
    for name in reversed(list(ERRORS)):  # the narrower come later
        if isinstance(failure, ERRORS[name]):
            return {"error": name, "reason": line(str(failure), LONGEST_REASON)}
    return {"error": Unavailable.__name__, "reason": summary(failure)}


def read(text: bytes) -> dict[str, Any]:
    """Return the message that a child sent; raises :func:`disturbed` for anything else."""
    try:
        message: dict[str, Any] = json.loads(text)
    except (ValueError, RecursionError) as wrong:
        raise disturbed() from wrong
    match message:
        case {"type": "event", "event": dict()} | {"type": "answer", "answer": _}:
            return message
        case {"type": "error", "error": str(name), "reason": str()} if name in ERRORS:
            return message
    raise disturbed()


def disturbed() -> ProcessFailure:
    """Return the failure of a process that sent something that is none of its messages."""
    reason = "something else than the suite wrote into the pipe to the parent"
    return ProcessFailure("crash", reason)
