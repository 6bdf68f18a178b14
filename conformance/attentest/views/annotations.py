"""Annotations of a pull request: a line of output for each cause, as GitHub reads it."""

from collections.abc import Iterable, Iterator

from attentest.results.blocks import near, short
from attentest.results.causes import Cause

TITLE = "attentest"


def annotations(causes: Iterable[Cause]) -> Iterator[str]:
    """Yield a line for each cause: an error where it fails a run, else a warning.

    It is shown at the line of the code, where that is known, and in the summary otherwise.
    """
    for cause in causes:
        kind = "error" if cause.severity.fails_run else "warning"
        place = {"title": f"{TITLE}: {cause.head.clause}"}
        if cause.location:
            place = {"file": near(cause.file), "line": str(cause.line), **place}
        properties = ",".join(f"{name}={_property(value)}" for name, value in place.items())
        yield f"::{kind} {properties}::{_escaped(_message(cause))}"


def _message(cause: Cause) -> str:
    """Return the mistake, and how many clauses of which code it breaks."""
    others = len(cause.verdicts) - 1
    more = f" and {others} more" if others else ""
    name = short(cause.head.backend)
    said = "; ".join(dict.fromkeys(filter(None, [cause.text.removesuffix("."), cause.words])))
    return f"{said} ({name} breaks {cause.head.clause}{more})"


def _escaped(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _escaped(text).replace(":", "%3A").replace(",", "%2C")
