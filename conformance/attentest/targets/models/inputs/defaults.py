"""Optional masks that the code of a call makes itself where it gets none."""

import ast
import inspect
import textwrap
from collections.abc import Iterable
from typing import Any


def makes_masks(forward: Any, masks: Iterable[str]) -> bool:
    """Say whether a call sets each of the `masks` where it is None."""
    try:
        body = ast.parse(textwrap.dedent(inspect.getsource(forward)))
    except (OSError, SyntaxError, TypeError):
        return False
    made = {own for node in ast.walk(body) if isinstance(node, ast.If) for own in _set_in(node)}
    return made.issuperset(masks)


def _set_in(node: ast.If) -> Iterable[str]:
    """Yield the names that are None by the test of a branch, and set in it."""
    match node.test:
        case ast.Compare(ast.Name(own), [ast.Is()], [ast.Constant(None)]):
            targets = [one for part in node.body for one in ast.walk(part)]
            if any(isinstance(one, ast.Name) and one.id == own and _is_set(one) for one in targets):
                yield own


def _is_set(name: ast.Name) -> bool:
    return isinstance(name.ctx, ast.Store)
