"""The sides of the arguments of a call, by the parts of the model that get them."""

import ast
import inspect
import textwrap
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from attentest.targets.adapt.components import side_named, squashed
from attentest.targets.adapt.names import ROLES
from attentest.targets.adapt.reading import Reading
from attentest.targets.models.inputs.packed import devices_given


def said_by_uses(kind: type, reading: Reading) -> Reading:
    """Return `reading` with what the code of a model says of arguments whose names do not."""
    forward = kind.forward  # type: ignore[attr-defined]
    return _with_sides(forward, devices_given(kind, reading))


def _with_sides(forward: Callable[..., Any], reading: Reading) -> Reading:
    """Return `reading` with the arguments that a call hands to its encoder and to its decoder.

    It is `reading` itself where that is not the way of both, and where a name says a side: a name
    is what is meant, and what the code does with it may be a mistake.
    """
    if {"source", "target"} & {*reading.arguments}:
        return reading
    try:
        body = ast.parse(textwrap.dedent(inspect.getsource(forward))).body[0]
    except (OSError, SyntaxError, TypeError):
        return reading
    if not isinstance(body, ast.FunctionDef):
        return reading
    own = [one for one in inspect.signature(forward).parameters if one not in reading.given]
    free = [one for one in own[1:] if "mask" not in one.lower()]
    if any(squashed(one) in ROLES.get(side_named(one), ()) for one in free):
        return reading  # labels may be shifted where decoder_input_ids is left out
    uses = _Uses(free)
    uses.visit(body)
    sides = {side: own for own, side in reversed(uses.sides.items())}
    if len(sides) < 2 or any(side_named(one) for one in sides.values()):
        return reading
    return replace(reading, arguments={**reading.arguments, **sides})


class _Uses(ast.NodeVisitor):
    """Follows arguments into calls of what is named after a side; the first such call counts."""

    def __init__(self, arguments: list[str]) -> None:
        self.origins = {one: one for one in arguments}
        self.loops: dict[str, str] = {}
        self.sides: dict[str, str] = {}
        self.within = ""

    def visit_Name(self, node: ast.Name) -> None:
        """Note the side of an argument where it is handed to one."""
        own = self.origins.get(node.id)
        if own and self.within and isinstance(node.ctx, ast.Load):
            self.sides.setdefault(own, self.within)

    def visit_Call(self, node: ast.Call) -> None:
        """Look at what is handed to a part of a side."""
        name = getattr(node.func, "attr", getattr(node.func, "id", ""))
        before, self.within = self.within, self.loops.get(name) or side_named(name) or self.within
        for one in (*node.args, *(word.value for word in node.keywords)):
            self.visit(one)
        self.within = before

    def visit_For(self, node: ast.For) -> None:
        """Take the layers of a loop over a stack for parts of its side."""
        if isinstance(node.target, ast.Name) and (side := side_named(ast.unparse(node.iter))):
            self.loops[node.target.id] = side
        self.generic_visit(node)

    def visit_Assign(self, node: ast.Assign) -> None:
        """Follow what is computed of one argument alone."""
        self.visit(node.value)
        read = {one.id for one in ast.walk(node.value) if isinstance(one, ast.Name)}
        origins = {self.origins[one] for one in read if one in self.origins}
        for one in node.targets:
            if isinstance(one, ast.Name):
                self.origins.pop(one.id, None)
                if len(origins) == 1:
                    self.origins[one.id] = next(iter(origins))
