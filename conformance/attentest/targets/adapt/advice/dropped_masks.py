"""Statements that mask scores and drop the result: torch returns a new tensor from them."""

import ast
import inspect
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from torch import nn

from attentest.targets.adapt.reading import Uncovered

_WITH_A_WRITER = frozenset(["masked_fill", "masked_scatter", "index_fill"])
"""Methods of which one with an underscore behind its name writes in place."""
_MASKING = _WITH_A_WRITER | {"where"}
"""Functions and methods that return a tensor with other entries, and change none in place."""


def demand_kept_masks(name: str, thing: Any, built: Any) -> None:
    """Raise Uncovered where code of `thing`, or of a part of it as `built`, drops a masked tensor.

    Numbers of the formula without that mask are no evidence: what the statement is for is not done.
    """
    modules = built.modules() if isinstance(built, nn.Module) else ()
    for code in dict.fromkeys([thing, *map(type, modules)]):
        for line, called in _dropped(code):
            writer = f", or call {called}_, which writes in place" * (called in _WITH_A_WRITER)
            raise Uncovered(
                f"{name} is not judged: {line} calls {called} and drops the result, so that what "
                f"it masks stays as it was. {called} returns a new tensor: assign it{writer}. If "
                f"the statement is meant to have no effect, --anyway (in Python: anyway=True) "
                f"judges it as it is."
            )


def _dropped(code: Any) -> Iterator[tuple[str, str]]:
    """Yield the line of each statement of `code` that drops a masked tensor, and its function."""
    if str(getattr(code, "__module__", "torch")).partition(".")[0] == "torch":
        return
    try:
        lines, first = inspect.getsourcelines(code)
        tree = ast.parse(textwrap.dedent("".join(lines)))
        file = Path(inspect.getsourcefile(code) or "").name
    except (OSError, TypeError, SyntaxError):
        return
    for one in ast.walk(tree):
        match one:
            case ast.Expr(value=ast.Call(func=ast.Attribute(attr=called), keywords=given)):
                if called in _MASKING and all(word.arg != "out" for word in given):
                    yield f"{file}:{first + one.lineno - 1}", called
