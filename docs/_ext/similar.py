"""Compares what a page shows with what is printed now: times and rounding may differ."""

import re
from math import isclose

SMALL = 1e-9
"""Below this, a difference is rounding, which depends on the machine."""

_TIME = re.compile(r"\d+(?:\.\d+)? ?(?:ms|s|seconds?|min(?:utes)?)\b")
_ROUNDED = re.compile(r"\bequal to \d\.\de-(?:1\d|09)\b")
_SPACE = re.compile(r"[ \t]+|(?<=-)-+|(?<==)=+")
_NUMBER = re.compile(r"(-?\d+\.\d+(?:e[+-]?\d+)?|-?\d+e[+-]?\d+)")


def same(old: str, new: str, ignored: str = "") -> bool:
    """Say whether two texts are the same, but for times, rounding and the width of columns.

    What the pattern `ignored` matches may differ too.
    """
    several = [_NUMBER.split(_plain(one, ignored)) for one in (old, new)]
    return len(several[0]) == len(several[1]) and all(map(_close, *several))


def _plain(text: str, ignored: str) -> str:
    text = re.sub(ignored, "", text, flags=re.MULTILINE) if ignored else text
    # On another processor the same numbers may be equal to the last bit.
    return _SPACE.sub(" ", _ROUNDED.sub("equal", _TIME.sub("TIME", text)))


def _close(one: str, other: str) -> bool:
    if one == other:
        return True
    if not (_NUMBER.fullmatch(one) and _NUMBER.fullmatch(other)):
        return False
    return isclose(float(one), float(other), rel_tol=1e-2, abs_tol=SMALL)
