"""The call that gives another value to a function that computes the right one elsewhere."""

import ast
import linecache
from collections import Counter
from collections.abc import Iterator

from attentest.analysis.lines.alignment import Alignment
from attentest.analysis.lines.recording import Operation, Place


def differing_call(alignment: Alignment, operation: Operation) -> int | None:
    """Return the number of the innermost place in which a right call of a line is another one.

    The line is that of `operation`; None where it is right nowhere, or is called alike.
    """
    for other in alignment.recording.operations:
        same = other.name == operation.name and other.places[:1] == operation.places[:1]
        if same and alignment.known.get(other.outputs[0].number):
            both = zip(operation.places, other.places, strict=False)
            return next((n for n, (one, another) in enumerate(both) if one != another), None)
    return None


def takes_each_once(place: Place) -> bool:
    """Say whether the arguments of a function that a line uses are used nowhere else in it.

    Then each has a use of its own, and another value in it is that of the caller.
    """
    source = "".join(linecache.getlines(place.file))
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return False
    function = next(
        (
            node
            for node in ast.walk(tree)
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            and place.function in (node.lineno, *(one.lineno for one in node.decorator_list))
        ),
        None,
    )
    if function is None:
        return False
    given = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
    names = {one.arg for one in given}
    uses = Counter(one.id for one in _values(function) if one.id in names)
    here = {one.id for one in _values(function) if one.id in names and _is_at(one, place.line)}
    return bool(here) and all(uses[one] == 1 for one in here)


def _values(node: ast.AST) -> Iterator[ast.Name]:
    """Yield the names that are read as values, and not for an attribute as `x.shape`."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Attribute) and isinstance(child.value, ast.Name):
            continue
        if isinstance(child, ast.Name) and isinstance(child.ctx, ast.Load):
            yield child
        yield from _values(child)


def _is_at(name: ast.Name, line: int) -> bool:
    return name.lineno <= line <= (name.end_lineno or name.lineno)
