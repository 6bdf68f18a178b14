"""Text arguments whose values a constructor names by comparing them with its own words."""

import ast
import inspect
import textwrap
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from attentest.targets.adapt.components import words_of
from attentest.targets.adapt.reading import Attempt

_MOST = 2
"""The largest number of words of an argument that are tried."""


_FILES = frozenset(("path", "file", "filename", "folder", "dir", "directory"))


def names_file(own: str) -> bool:
    """Say whether a word of the argument `own` says that it is a file or a folder."""
    return not _FILES.isdisjoint(words_of(own))


def attempts_of_words(thing: Callable[..., Any], unknown: Sequence[str]) -> Iterator[Attempt]:
    """Yield what the `unknown` arguments may be, where each is compared with words in the code."""
    words = [_words(thing, own)[:_MOST] for own in unknown]
    if unknown and all(words):
        for at in range(max(map(len, words))):
            given = {
                own: one[min(at, len(one) - 1)] for own, one in zip(unknown, words, strict=True)
            }
            yield Attempt(given=given)


def _words(thing: Callable[..., Any], own: str) -> list[str]:
    """Return the words that the argument `own` is compared with: `own == "a"`, `own in ["a"]`."""
    made = thing.__init__ if inspect.isclass(thing) else thing
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(made)))
    except (OSError, SyntaxError, TypeError):
        return []
    found: list[str] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare) and _is(node.left, own):
            held = [one for side in node.comparators for one in ast.walk(side)]
            found += [
                one.value
                for one in held
                if isinstance(one, ast.Constant) and isinstance(one.value, str)
            ]
    return list(dict.fromkeys(found))


def _is(node: ast.expr, own: str) -> bool:
    return isinstance(node, ast.Name) and node.id == own
