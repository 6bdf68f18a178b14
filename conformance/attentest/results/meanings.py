"""Masks of one file that are made with one meaning of True and taken with the other."""

import re
from collections.abc import Iterable, Mapping, Sequence

_MADE = re.compile(r"what it makes: True or 1 (may be attended|blocks)\b")
_TAKEN = re.compile(r"mask: True (may be attended|blocks)\b.*as a probing call shows")
_SAID = {
    "may be attended": "True may be attended, and in those of {} True blocks",
    "blocks": "True blocks, and in those of {} True may be attended",
}


def contradiction(inferred: Mapping[str, Sequence[str]]) -> str:
    """Return the sentence on masks that a function makes and other code takes for their opposite.

    `inferred` are the lines on how each piece of code of a file was read. It is "" where no probing
    call decided what a mask means, or all agree.
    """
    made = {name: one for name, lines in inferred.items() if (one := _first(_MADE, lines))}
    taken = {name: one for name, lines in inferred.items() if (one := _first(_TAKEN, lines))}
    for maker, meaning in made.items():
        others = [name for name, one in taken.items() if one != meaning]
        if others and len(others) == len(taken):
            said = _SAID[meaning].format(_listed(others))
            return (
                f"assumed that masks are turned around on their way: in those that {maker} makes "
                f"{said}; if they are handed on as they are, this is a mistake"
            )
    return ""


def _first(pattern: re.Pattern[str], lines: Iterable[str]) -> str:
    found = next(filter(None, (pattern.match(one) for one in lines)), None)
    return "" if found is None else found[1]


def _listed(names: Sequence[str]) -> str:
    return " and ".join(names) if len(names) < 3 else f"{names[0]} and {len(names) - 1} more"
