"""What the commands that write a report have in common."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from attentest.commands.usage import Usage, usage
from attentest.extra import Missing, needed
from attentest.output import replacing
from attentest.report.changes import Unrelated
from attentest.report.page import BEGINNING
from attentest.results import Unreadable


@contextmanager
def reporting() -> Iterator[None]:
    """Turn what cannot be reported into one paragraph and exit code 2."""
    try:
        with usage():
            yield
    except (Missing, Unreadable, Unrelated) as wrong:
        raise Usage(str(wrong)) from wrong


@contextmanager
def page_file(path: Path | None) -> Iterator[TextIO | None]:
    """Open `path` for a report; None for no path.

    What a report needs is looked for first: an hour of judging is not to end in a page that cannot
    be written. Raises Missing, or Occupied as :func:`~attentest.output.replacing` does.
    """
    if path is not None:
        for library in ("jinja2", "jsonschema"):
            needed(library)
    with replacing(path, BEGINNING) as file:
        yield file
