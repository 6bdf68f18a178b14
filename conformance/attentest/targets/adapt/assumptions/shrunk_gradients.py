"""Recognises code that makes a gradient smaller on purpose: a * x + (1 - a) * x.detach().

GLM-130B trains its table of tokens so. The output is x, and the gradient is a part of that of x.
"""

import ast
import inspect
import textwrap
from typing import Any

from torch import nn

from attentest.targets.adapt.reading import Reading, Unclear


def demand_whole_gradients(name: str, built: Any, reading: Reading) -> None:
    """Raise Unclear for a module, or one in it, of which a line makes a gradient smaller."""
    if reading.anyway or not isinstance(built, nn.Module):
        return
    for one in dict.fromkeys(type(module) for module in built.modules()):
        if one.__module__.partition(".")[0] == "torch" or not (found := _shrunk(one)):
            continue
        line, factor = found
        own = factor.rpartition(".")[2]
        given = own in inspect.signature(one).parameters
        if given and reading.given.get(own) == 1:
            continue
        without = f"--give {own}=1 (in Python: given={{{own!r}: 1}}) judges it without. " * given
        raise Unclear(
            f"{name} gives {factor} times the gradient that its numbers have: {line}, as GLM-130B "
            f"does, which is not specified. {without}--anyway (in Python: anyway=True) judges it "
            f"as it is."
        )


def _shrunk(thing: type[nn.Module]) -> tuple[str, str] | None:
    """Return the expression that makes a gradient smaller, and the factor; None for no such one."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(thing)))
    except (OSError, SyntaxError, TypeError):
        return None
    for node in ast.walk(tree):
        if not (isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add)):
            continue
        for one, other in ((node.left, node.right), (node.right, node.left)):
            for factor, x in _product(one):
                rest = [(f"{whole} - {factor}", f"{x}.detach()") for whole in ("1", "1.0")]
                if any(pair in rest for pair in _product(other)):
                    return ast.unparse(node), factor
    return None


def _product(node: ast.expr) -> list[tuple[str, str]]:
    """Return the two factors of a product in both orders, none for another expression."""
    if not (isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult)):
        return []
    one, other = ast.unparse(node.left), ast.unparse(node.right)
    return [(one, other), (other, one)]
