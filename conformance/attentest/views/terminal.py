"""Helpers of the terminal's views: paragraphs and progress bars."""

import sys
from textwrap import fill

from rich.console import Console
from rich.progress import Progress
from rich.text import Text


def say(console: Console, *lines: str) -> None:
    """Print each of `lines` as plain text, broken where the terminal ends."""
    for one in lines:
        console.print(Text(fill(one, console.width)), soft_wrap=True)


def progress() -> Progress:
    """Return a progress bar that shows on a terminal alone, and leaves nothing behind."""
    return Progress(console=Console(stderr=True), transient=True, disable=not sys.stderr.isatty())
