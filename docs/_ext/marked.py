"""The marked places of a page: a comment that no reader sees, and the block below it.

    <!-- run: attentest check unscaled.py
    exit: 1
    until: to reproduce
    -->
    ```text
    $ attentest check unscaled.py
    ..
    ```

A mark `curves: NAME` shows the stored training `docs/records/NAME.json`: what `attentest learn`
printed, with the command that trains again, and a picture of the curves.

A mark `index: NAME` shows the stored silent-bug index `docs/records/NAME.json` in the same way.

A mark has a kind, an argument and options, one a line. Its block is a fenced block, then perhaps a
line of pictures. A page is plain Markdown, which every forge shows.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

KINDS = ("walk", "run", "file", "include", "picture", "compute", "mask", "curves", "index")

_PLACE = re.compile(
    rf"""^<!--\ (?P<kind>{"|".join(KINDS)})(?::\ (?P<argument>[^\n]+?))?
    (?P<options>(?:\n[a-z]+:\ [^\n]+?)*)\s*-->\n
    (?:```(?P<language>\w*)\n(?P<code>.*?)^```\n)?
    (?P<pictures>\n?(?:!\[[^\]]*\]\([^)\s]+\)\s*)+?\n(?=\n|\Z))?""",
    re.MULTILINE | re.DOTALL | re.VERBOSE,
)


@dataclass(frozen=True)
class Place:
    """A marked place; `code` is None where no block follows, `pictures` is "" where none do."""

    kind: str
    argument: str = ""
    options: Mapping[str, str] = field(default_factory=dict)
    language: str = ""
    code: str | None = None
    pictures: str = ""

    def text(self) -> str:
        """Return the place as it is written."""
        options = "".join(f"\n{name}: {value}" for name, value in self.options.items())
        argument = f": {self.argument}" if self.argument else ""
        mark = f"<!-- {self.kind}{argument}{options}{chr(10) if options else ' '}-->\n"
        block = "" if self.code is None else f"```{self.language}\n{self.code}```\n"
        return f"{mark}{block}{self.pictures}"


def places(page: str) -> list[Place]:
    """Return the marked places of a page; ValueError for a mark that cannot be read."""
    found = [_place(one) for one in _PLACE.finditer(page)]
    if len(found) != len(re.findall(rf"^<!-- (?:{'|'.join(KINDS)})\b", page, re.MULTILINE)):
        raise ValueError(f"only {len(found)} marks can be read")
    return found


def filled(page: str, change: Callable[[Place], Place]) -> str:
    """Return `page` with what `change` makes of every marked place, from top to bottom."""
    places(page)
    return _PLACE.sub(lambda one: change(_place(one)).text(), page)


def _place(match: re.Match[str]) -> Place:
    pairs = (line.partition(": ") for line in (match["options"] or "").split("\n") if line)
    return Place(
        match["kind"],
        match["argument"] or "",
        {name: value for name, _, value in pairs},
        match["language"] or "",
        match["code"],
        match["pictures"] or "",
    )
