"""Result files: one JSON object with its kind, its format and the environment it was made in.

The stream of a run is a file of its own kind (see :mod:`attentest.results.stream`); all other
results of commands are written and read here.
"""

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from attentest.results.output import opened
from attentest.results.run import environment

FORMAT = 1
"""The version of all kinds of result files."""


class Unreadable(Exception):
    """A file that holds no result of the wanted kind; its text is one paragraph with the reason."""


def write(path: Path | None, kind: str, content: Mapping[str, Any]) -> None:
    """Write `content` as a result of `kind` to `path`; nothing for no path.

    A number that is not finite is written as null. Raises
    :class:`~attentest.results.output.Occupied` for a file that cannot be written or holds
    something else than a result of this kind.
    """
    content_text = text(kind, content)  # before an older result makes room for it
    with opened(path, beginning(kind)) as file:
        if file is not None:
            file.write(content_text)


def text(kind: str, content: Mapping[str, Any]) -> str:
    """Return what a file with `content` as a result of `kind` holds."""
    head = {"type": kind, "format": FORMAT, "environment": environment()}
    return json.dumps(_finite({**head, **content}), ensure_ascii=False, allow_nan=False) + "\n"


def read(path: Path, *kinds: str) -> dict[str, Any]:
    """Return the result in `path`, which is of one of `kinds`; raise :class:`Unreadable` if not."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except OSError as failure:
        raise Unreadable(f"{path} cannot be read: {failure.strerror}.") from failure
    except ValueError as failure:
        raise Unreadable(f"{path} is no JSON: {failure}. It may have been cut off.") from failure
    wanted = " or ".join(kinds)
    if not isinstance(found, dict) or found.get("type") not in kinds:
        said = found.get("type") if isinstance(found, dict) else type(found).__name__
        raise Unreadable(f"{path} is no {wanted} that attentest wrote: its type is {said!r}.")
    if found.get("format") != FORMAT:
        raise Unreadable(
            f"{path} is a {found['type']} of format {found.get('format')!r}, and this version "
            f"reads format {FORMAT}. Make it again."
        )
    return found


def beginning(kind: str) -> str:
    """Return what every file with a result of `kind` begins with."""
    return f'{{"type": {json.dumps(kind)}'


def _finite(value: Any) -> Any:
    """Return `value` with null in place of every number that JSON cannot hold."""
    match value:
        case float() if not math.isfinite(value):
            return None
        case Mapping():
            return {str(name): _finite(one) for name, one in value.items()}
        case list() | tuple():
            return [_finite(one) for one in value]
        case _:
            return value
