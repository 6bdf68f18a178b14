"""Text arguments whose values a constructor names by comparing them with its own words."""

import ast
import inspect
import textwrap
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
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


def worded(given: Mapping[str, Any]) -> str:
    """Return the assumption about the words `given`, "" for none."""
    said = " and ".join(f"{own}={word}" for own, word in given.items())
    return f"assumed {said}, which its code compares it with" if given else ""


def _words(thing: Callable[..., Any], own: str) -> list[str]:
    """Return the words that the argument `own` is compared with: `own == "a"`, `own in ["a"]`.

    It may be stored first: `self.own.lower() == "a"`.
    """
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


def words_at_calls(thing: Any, own: str, known: Collection[str]) -> dict[str, str]:
    """Return words for fields of the settings `own` that methods of a class compare with them.

    They are read when it is called (`self.own.pooling == "mean"`), and the `known` ones are not.
    """
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(thing)))
    except (OSError, SyntaxError, TypeError):
        return {}
    found: dict[str, str] = {}
    for node in ast.walk(tree):
        if not isinstance(node, ast.Compare) or not isinstance(node.left, ast.Attribute):
            continue
        word = getattr(node.comparators[0], "value", None)
        is_field = node.left.attr not in known and _is(node.left.value, own)
        if is_field and isinstance(word, str):
            found.setdefault(node.left.attr, word)
    return found


def _is(node: ast.expr, own: str) -> bool:
    """Say whether a node is the argument `own`, an attribute by its name, or that in lower case."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and not node.args:
        return node.func.attr in ("lower", "upper", "strip") and _is(node.func.value, own)
    if isinstance(node, ast.Attribute):
        return node.attr == own and getattr(node.value, "id", "") == "self"
    return isinstance(node, ast.Name) and node.id == own
