"""Options and errors shared by the commands that write a report."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from attentest.interfaces.cli.usage import Usage, usage
from attentest.results.changes import Unrelated
from attentest.results.files import Unreadable
from attentest.results.optional import Missing, needed
from attentest.results.output import Writable, replacing


@contextmanager
def reporting() -> Iterator[None]:
    """Turn what cannot be reported into one paragraph and exit code 2."""
    try:
        with usage():
            yield
    except (Missing, Unreadable, Unrelated) as wrong:
        raise Usage(str(wrong)) from wrong


@contextmanager
def page_file(path: Path | None) -> Iterator[Writable | None]:
    """Open `path` for a report; None for no path.

    What a report needs is looked for first: an hour of judging is not to end in a page that cannot
    be written. Raises Missing, or Occupied as :func:`~attentest.results.output.replacing` does.
    """
    if path is None:
        yield None
        return
    from attentest.views.html.page import BEGINNING  # most commands write no report

    for library in ("jinja2", "jsonschema"):
        needed(library)
    with replacing(path, BEGINNING) as file:
        yield file
