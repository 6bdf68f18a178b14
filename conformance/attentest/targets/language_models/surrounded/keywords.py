"""Arguments of a call that its code reads of `**kwargs`, by their names in quotes."""

import ast
import inspect
import textwrap
from collections.abc import Callable, Iterator
from typing import Any

_READS = ("get", "pop")
"""Methods of a dictionary that return one of its values, or a default."""


def with_keywords(called: Callable[..., Any]) -> inspect.Signature:
    """Return the signature of `called`, with the names that it reads of its loose keywords.

    `kwargs.get("start_pos", 0)` is an argument `start_pos` whose default is 0.
    """
    own = inspect.signature(called)
    held = list(own.parameters.values())
    loose = next((one for one in held if one.kind is inspect.Parameter.VAR_KEYWORD), None)
    if loose is None:
        return own
    found = {
        name: inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default)
        for name, default in _read(called, loose.name)
        if name.isidentifier() and name not in own.parameters
    }
    return own.replace(parameters=[*held[:-1], *found.values(), loose])


def _read(called: Callable[..., Any], loose: str) -> Iterator[tuple[str, Any]]:
    """Yield the names that the code reads of the dictionary `loose`, with their defaults."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(called)))
    except (OSError, SyntaxError, TypeError):
        return
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
            continue
        of, arguments = node.func.value, node.args
        if not (isinstance(of, ast.Name) and of.id == loose and node.func.attr in _READS):
            continue
        if arguments and isinstance(arguments[0], ast.Constant) and type(arguments[0].value) is str:
            yield arguments[0].value, _literal(arguments[1:])


def _literal(given: list[ast.expr]) -> Any:
    """Return the default that a method is given, None where it is given none, or an expression."""
    return given[0].value if given and isinstance(given[0], ast.Constant) else None
