"""Masks of one file that are made with one meaning of True and taken with the other."""

import ast
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

_MADE = re.compile(r"what it makes: True or 1 (may be attended|blocks)\b")
_TAKEN = re.compile(r"mask: True (may be attended|blocks)\b.*as a probing call shows")
_SAID = {
    "may be attended": "True may be attended, and in those of {} True blocks",
    "blocks": "True blocks, and in those of {} True may be attended",
}


@dataclass(frozen=True)
class Contradiction:
    """A `maker` of masks whose True has one `meaning`, and code that takes it for the opposite.

    `turned` says that code of the file between them turns masks around.
    """

    maker: str
    meaning: str
    takers: Sequence[str]
    turned: bool

    @property
    def text(self) -> str:
        """The assumption that masks are turned around, or the question whether they are."""
        made = (
            f"in those that {self.maker} makes {_SAID[self.meaning].format(_listed(self.takers))}"
        )
        if self.turned:
            return (
                f"assumed that masks are turned around on their way: {made}; if they are handed on "
                "as they are, this is a mistake"
            )
        return (
            f"Masks have two meanings in this file: {made}. If nothing turns them around on their "
            "way, and no code of the file does, one of the two is a mistake. Say what masks mean "
            "with --set mask=keep or --set mask=blocks: the other one is judged as a mistake then."
        )


def contradiction(inferred: Mapping[str, Sequence[str]], source: str) -> Contradiction | None:
    """Return the masks that a function makes and other code takes for their opposite.

    `inferred` are the lines on how each piece of code of a file with that `source` was read. None
    where no probing call decided what a mask means, or all agree.
    """
    made = {name: one for name, lines in inferred.items() if (one := _first(_MADE, lines))}
    taken = {name: one for name, lines in inferred.items() if (one := _first(_TAKEN, lines))}
    for maker, meaning in made.items():
        others = [name for name, one in taken.items() if one != meaning]
        if others and len(others) == len(taken):
            return Contradiction(maker, meaning, others, _is_turned(source, [maker, *others]))
    return None


_TURNS = (
    r"(~|\bnot |\b1(\.0)? - )[\w.(]*({0})|({0})\w*(\(.*\))?(\[.*\])? == (0|False)"
    r"|({0})\w*(\(.*\))?(\[.*\])?\.(eq\((0|False)\)|logical_not|bitwise_not)"
    r"|(logical_not|bitwise_not)\("
)
"""The code that turns a mask around, by a part of its name."""


def _is_turned(source: str, names: Collection[str]) -> bool:
    """Say whether code outside of the functions and classes of those `names` turns a mask around.

    So it may be where the source is not known.
    """
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return True
    others = [one for one in tree.body if getattr(one, "name", "") not in names]
    turns = re.compile(_TURNS.format("|".join(("mask", *map(re.escape, names)))), re.IGNORECASE)
    return not others or any(turns.search(ast.unparse(one)) for one in others)


def _first(pattern: re.Pattern[str], lines: Iterable[str]) -> str:
    found = next(filter(None, (pattern.match(one) for one in lines)), None)
    return "" if found is None else found[1]


def _listed(names: Sequence[str]) -> str:
    return " and ".join(names) if len(names) < 3 else f"{names[0]} and {len(names) - 1} more"
