"""The colours of a screen: lines that are text without them, and are read as such too."""

import re

from rich.text import Text

_STYLES = (
    (re.compile(r"\d+  warning: .*"), "bold yellow"),
    (re.compile(r"\d+  .*"), "bold red"),
    (re.compile(r" +computed  .*"), "red"),
    (re.compile(r" +expected  .*|.* conform$"), "green"),
    (re.compile(r"understood: .*|   also breaks .*|   example: .*"), "dim"),
    (re.compile(r".* does not conform: .*"), "bold red"),
    (re.compile(r"   (confirmed|suspected|likely cause|known mistake): .*"), "yellow"),
    (re.compile(r"next: .*"), "cyan"),
)


def coloured(screen: str) -> Text:
    """Return the lines of a screen, each in the style of what it says."""
    text = Text()
    for line in screen.split("\n"):
        style = next((style for shape, style in _STYLES if shape.fullmatch(line)), "")
        text.append(line, style)
        text.append("\n")
    text.right_crop(1)
    return text
