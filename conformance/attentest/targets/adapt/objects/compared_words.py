"""Text arguments whose values a constructor names by comparing them with its own words."""

import ast
import inspect
import textwrap
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from types import ModuleType
from typing import Any

from attentest.targets.adapt.components import words_of
from attentest.targets.adapt.reading import Attempt

_FILES = frozenset(("path", "file", "filename", "folder", "dir", "directory"))


def names_file(own: str) -> bool:
    """Say whether a word of the argument `own` says that it is a file or a folder."""
    return not _FILES.isdisjoint(words_of(own))


def attempts_of_words(
    thing: Callable[..., Any], unknown: Sequence[str], left: Collection[str], most: int
) -> Iterator[Attempt]:
    """Yield what the `unknown` arguments may be, where each is compared with words in the code.

    The first words of each are tried, as many as `most`. One of them may be compared with none, and
    is one of the sizes that are `left`.
    """
    words = {own: found for own in unknown if (found := _words(thing, own)[:most])}
    rest = [own for own in unknown if own not in words]
    if not words or len(rest) > 1:
        return
    roles = [{size: own} for own in rest for size in sorted(left, key=lambda one: one != "d_model")]
    for at in range(max(map(len, words.values()))):
        given = {own: found[min(at, len(found) - 1)] for own, found in words.items()}
        for arguments in roles if rest else [{}]:
            yield Attempt(arguments=arguments, given=given)


def worded(given: Mapping[str, Any]) -> str:
    """Return the assumption about the words `given`, "" for none."""
    said = " and ".join(f"{own}={word}" for own, word in given.items())
    return f"assumed {said}, which its code compares it with" if given else ""


def _words(thing: Callable[..., Any], own: str) -> list[str]:
    """Return the words that the argument `own` is compared with: `own == "a"`, `own in ["a"]`.

    It may be stored first, `self.own.lower() == "a"`, and the word may have a name: `WORDS.FIRST`.
    """
    made = thing.__init__ if inspect.isclass(thing) else thing
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(made)))
    except (OSError, SyntaxError, TypeError):
        return []
    known = getattr(made, "__globals__", {})
    found: list[str] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare) and _is(node.left, own):
            held = (one for side in node.comparators for one in ast.walk(side))
            values = (_value(one, known) for one in held)
            found += [one for one in values if isinstance(one, str)]
    return list(dict.fromkeys(found))


def _value(node: ast.AST, known: Mapping[str, Any]) -> Any:
    """Return a constant, the value of a name of the `known` ones, or that of a module's name."""
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        home = known.get(node.value.id)
        return getattr(home, node.attr, None) if isinstance(home, ModuleType) else None
    return known.get(node.id) if isinstance(node, ast.Name) else getattr(node, "value", None)


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
