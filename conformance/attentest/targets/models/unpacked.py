"""Arguments of a call that hold several inputs, by the statement that takes them apart."""

import ast
import inspect
import textwrap
from typing import Any


def unpacked(forward: Any) -> tuple[str, tuple[str, ...]]:
    """Return the one argument of a call and the names that its code gives the parts, () for none.

    Its parts are taken apart in order by one statement, `src, tgt = inputs`, and the argument is
    used nowhere else.
    """
    held = list(inspect.signature(forward).parameters.values())[1:]
    own = [one.name for one in held if one.default is inspect.Parameter.empty]
    try:
        body = ast.parse(textwrap.dedent(inspect.getsource(forward)))
    except (OSError, SyntaxError, TypeError):
        return "", ()
    used = [one for one in ast.walk(body) if isinstance(one, ast.Name) and one.id in own]
    for one in ast.walk(body) if len(own) == len(used) == 1 else ():
        if isinstance(one, ast.Assign) and one.value is used[0]:
            parts = getattr(one.targets[0], "elts", [])
            names = tuple(part.id for part in parts if isinstance(part, ast.Name))
            return (own[0], names) if len(names) == len(parts) else ("", ())
    return "", ()
