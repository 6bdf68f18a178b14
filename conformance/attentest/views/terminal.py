"""What the terminal's views have in common."""

from textwrap import fill

from rich.console import Console
from rich.text import Text


def say(console: Console, *lines: str) -> None:
    """Print each of `lines` as plain text, broken where the terminal ends."""
    for one in lines:
        console.print(Text(fill(one, console.width)), soft_wrap=True)
