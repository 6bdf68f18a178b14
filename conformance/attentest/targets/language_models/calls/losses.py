"""Arguments of a call that are read by its loss alone."""

import ast
import inspect
import re
import textwrap
from collections.abc import Callable
from typing import Any

from attentest.targets.adapt.components import squashed
from attentest.targets.language_models.argument_names import LABELS

_LOSS = re.compile(r"(?i)cross_?entropy|nll|loss|criterion")


def is_of_loss(forward: Callable[..., Any], own: str) -> bool:
    """Say whether the argument `own` has a name of labels, and is read by a loss alone.

    It may be compared with None besides.
    """
    if squashed(own) not in LABELS:
        return False
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(forward)))
    except (OSError, SyntaxError, TypeError):
        return False
    uses = {id(one) for one in ast.walk(tree) if isinstance(one, ast.Name) and one.id == own}
    read = [one for node in ast.walk(tree) if _is_of_loss(node) for one in _given(node)]
    compared = [one for node in ast.walk(tree) if _is_of_none(node) for one in ast.walk(node)]
    lost = {id(one) for one in read} & uses
    return bool(lost) and uses <= lost | {id(one) for one in compared}


def _is_of_loss(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and _LOSS.search(ast.unparse(node.func)) is not None


def _given(node: ast.AST) -> list[ast.AST]:
    """Return the names that the arguments of a call are, or are made of by methods and slices."""
    given = (
        [*node.args, *(one.value for one in node.keywords)] if isinstance(node, ast.Call) else []
    )
    return [_root(one) for one in given]


def _root(node: ast.expr) -> ast.AST:
    while isinstance(node, ast.Call | ast.Attribute | ast.Subscript):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node


def _is_of_none(node: ast.AST) -> bool:
    return isinstance(node, ast.Compare) and ast.unparse(node.comparators[0]) == "None"
