"""Recognises code that makes a gradient smaller on purpose: a * x + (1 - a) * x.detach().

GLM-130B trains its table of tokens so. The output is x, and the gradient is a part of that of x.
"""

import ast
import inspect
import textwrap
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn

from attentest.targets.adapt.reading import Reading, Unclear, Uncovered
from attentest.targets.deep_copies import copy_of


def demand_whole_gradients(name: str, built: Any, reading: Reading) -> None:
    """Raise Unclear for a module, or one in it, of which a line makes a gradient smaller.

    And so for one that changes its parameters where it goes to training mode: a gradient is that
    of other numbers then.
    """
    if reading.anyway or not isinstance(built, nn.Module):
        return
    if moved := _moved_in_training(built):
        raise Uncovered(
            f"{name} is not judged: its parameter {moved} has other values in training mode than "
            f"in evaluation, as where train() puts them into another order, and which gradient is "
            f"that of which weight is not inferred. A backend written by hand can say it."
        )
    for one, module in {type(module): module for module in built.modules()}.items():
        if one.__module__.partition(".")[0] == "torch" or not (found := _shrunk(module)):
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


def _moved_in_training(built: nn.Module) -> str:
    """Return a parameter whose values change with the mode of `built`, "" for none."""
    if all(type(one).train is nn.Module.train for one in built.modules()):
        return ""
    try:
        moved = copy_of(built).eval()
        before = {own: one.detach().clone() for own, one in moved.named_parameters()}
        after = dict(moved.train().named_parameters())
    except Exception:  # code that a user wrote may raise anything
        return ""
    return next((own for own, one in before.items() if not _same(one, after.get(own))), "")


def _same(before: Tensor, after: Tensor | None) -> bool:
    return after is not None and before.shape == after.shape and torch.equal(before, after)


def _shrunk(module: nn.Module) -> tuple[str, str] | None:
    """Return the expression that makes a gradient smaller, and the factor; None for no such one."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(type(module))))
    except (OSError, SyntaxError, TypeError):
        return None
    for node in _run(tree, module):
        if not (isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add)):
            continue
        for one, other in ((node.left, node.right), (node.right, node.left)):
            for factor, x in _product(one):
                rest = [(f"{whole} - {factor}", f"{x}.detach()") for whole in ("1", "1.0")]
                if any(pair in rest for pair in _product(other)):
                    return ast.unparse(node), factor
    return None


def _run(node: ast.AST, module: nn.Module) -> Iterator[ast.AST]:
    """Yield the nodes of a tree, without those under a switch that is off in `module`."""
    yield node
    children: Iterator[ast.AST] = ast.iter_child_nodes(node)
    if isinstance(node, ast.If) and _is_off(node.test, module):
        children = iter(node.orelse)
    for one in children:
        yield from _run(one, module)


def _is_off(test: ast.expr, module: nn.Module) -> bool:
    """Say whether a condition holds an attribute of `module` that is False: `self.a and b`."""
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
        return any(_is_off(one, module) for one in test.values)
    if not isinstance(test, ast.Attribute) or getattr(test.value, "id", "") != "self":
        return False
    return vars(module).get(test.attr) is False


def _product(node: ast.expr) -> list[tuple[str, str]]:
    """Return the two factors of a product in both orders, none for another expression."""
    if not (isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult)):
        return []
    one, other = ast.unparse(node.left), ast.unparse(node.right)
    return [(one, other), (other, one)]
