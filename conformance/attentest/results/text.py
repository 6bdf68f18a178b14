"""Text and values of others, made safe to show: bounded, without control characters."""

import math
import os
import sysconfig
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attentest_spec

LONGEST = 100_000
"""Default limit of a text in characters: a whole reproduction fits."""

_MOST = 1000


def plain(text: str, limit: int = LONGEST) -> str:
    r"""Return `text` in at most `limit` characters, all printable or line breaks.

    Others are written as in Python, such as \x1b: they could steer a terminal, turn the direction
    of what follows, or be no character that a file can hold.
    """
    start = text[: limit + 1]
    if not start.isprintable():
        start = "".join(c if c.isprintable() or c == "\n" else _escaped(c) for c in start)
    return start if len(start) <= limit else start[: limit - 3] + "..."


def line(text: str, limit: int = 80) -> str:
    """Return `text` as one plain line of at most `limit` characters, white space folded."""
    return plain(" ".join(text[: 10 * limit].split()), limit)


def counted(number: int, noun: str, several: str = "") -> str:
    """Return `number` with its noun in singular or plural: "1 entry", "2 entries"."""
    return f"{number} {noun if number == 1 else several or noun + 's'}"


def plain_value(value: Any) -> Any:
    """Return `value` as JSON can hold it: plain texts, finite numbers, lists and dictionaries."""
    match value:
        case None | bool():
            return value
        case str():
            return plain(value)
        case int():
            return int(value)
        case float():
            return float(value) if math.isfinite(value) else str(value)
        case Mapping():
            return {line(str(key)): plain_value(one) for key, one in list(value.items())[:_MOST]}
        case list() | tuple() | set() | frozenset():
            return [plain_value(one) for one in list(value)[:_MOST]]
        case _:
            return line(str(value))


def plainly(value: Any) -> Any:
    """Return `value`, as JSON holds it, with every text in it safe to show."""
    match value:
        case str():
            return plain(value)
        case dict():
            return {plain(name): plainly(one) for name, one in value.items()}
        case list() | tuple():
            return [plainly(one) for one in value]
        case _:
            return value


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")


def summary(failure: BaseException, limit: int = 300) -> str:
    """Return the type and the message of `failure` on one line of at most `limit` characters.

    A longer message is cut in its middle: it often begins with a path, and ends with the reason.
    """
    try:
        text = str(failure)
    except Exception:  # the message is made by code of the backend's author
        text = "(its message cannot be read)"
    whole = line(f"{type(failure).__name__}: {text}", LONGEST).rstrip(": ")
    if len(whole) <= limit:
        return whole
    start = limit // 3
    return f"{whole[:start]} ... {whole[start + 5 - limit :]}"


def summary_with_place(failure: BaseException, limit: int = 120) -> str:
    """Return the :func:`summary` of `failure`, and the line of the user's code that it passed."""
    place = line_of_user(failure)
    return f"{summary(failure, limit)}{f' (at {place})' if place else ''}"


def last_frames(failure: BaseException, limit: int = 3) -> str:
    """Return the last lines of the traceback of `failure`, for a reader who has to find it.

    Where code of the suite that other code calls raises, as a check of devices does, it ends at the
    last line that is neither the suite's nor that of an installed library.
    """
    if isinstance(place := getattr(failure, "place", None), str):
        return place  # a line that ran before, as of a number that is overwritten later
    frames = list(traceback.extract_tb(failure.__traceback__))
    if frames and frames[-1].filename.startswith(_OWN):
        files = [one.filename for one in frames]
        others = [n for n, one in enumerate(files) if not one.startswith(_OWN)]
        users = [n for n in others if "site-packages" not in Path(files[n]).parts]
        frames = frames[: users[-1] + 1 if users else None]
    frames = frames[-limit:]
    return "; ".join(f"{frame.filename}:{frame.lineno} in {frame.name}" for frame in frames)


def line_of_user(failure: BaseException) -> str:
    """Return the innermost line in which `failure` passed code of a user, "" for none."""
    frames = reversed(traceback.extract_tb(failure.__traceback__))
    others = (*_OWN, sysconfig.get_path("stdlib"), "<")
    for frame in frames:
        path = Path(frame.filename)
        if not frame.filename.startswith(others) and "site-packages" not in path.parts:
            return f"{path.name}:{frame.lineno}"
    return ""


_OWN = tuple(
    f"{Path(one).parent}{os.sep}" for one in (attentest_spec.__file__, Path(__file__).parent)
)
"""The folders of the specification and of the suite."""
