"""Helpers of the terminal's views: paragraphs and progress bars."""

import sys
from collections.abc import Iterable
from textwrap import fill

from rich.console import Console, RenderableType
from rich.progress import Progress
from rich.text import Text

from attentest.views.coloured import coloured


def say(console: Console, *lines: str) -> None:
    """Print each of `lines` as plain text, broken where the terminal ends."""
    for one in lines:
        console.print(Text(fill(one, console.width)), soft_wrap=True)


class ProgressBar(Progress):
    """A progress bar below a text, `known`, of what is known already."""

    known = ""

    def get_renderables(self) -> Iterable[RenderableType]:
        """Yield the text, where there is one, and the bars."""
        if self.known:
            yield coloured(self.known)
        yield from super().get_renderables()


def progress() -> ProgressBar:
    """Return a progress bar that shows on a terminal alone, and leaves nothing behind."""
    console = Console(stderr=True)
    return ProgressBar(
        console=console,
        transient=True,
        refresh_per_second=4,  # it is redrawn anyway when something new is known
        disable=not sys.stderr.isatty(),
    )
