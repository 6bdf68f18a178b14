"""The expressions of plain numbers in the lines of code that run, with their values."""

import ast
import linecache
import math
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from types import CodeType, FrameType
from typing import Any, NamedTuple

from attentest.analysis.lines.recording import is_users

Key = tuple[str, int, int, int | None, int | None]
"""The place of an expression: its file, its first line and column, and its last ones."""


@dataclass(frozen=True)
class Line:
    """A line of code: the expression in it, and the name that it gives to its value, if any.

    The name of what a function returns is `RETURNED`.
    """

    file: str
    root: ast.expr
    name: str


class Ran(NamedTuple):
    """A line that ran, the name of the function that it is in, and the values in it."""

    line: Line
    function: str
    values: dict[Key, float]


RETURNED = "return"


class Traced:
    """Evaluates the expressions of each line of the user's code that runs inside the block.

    Operands are evaluated before the line runs, and what is made of calls of functions after it.
    """

    def __init__(self) -> None:
        self.ran: list[Ran] = []
        self._before: Any = None
        self._running: dict[FrameType, list[tuple[Line, dict[Key, float]]]] = {}
        self._returned: dict[str, float] = {}

    def __enter__(self) -> list[Ran]:
        self._before = sys.gettrace()
        sys.settrace(self._enter)
        return self.ran

    def __exit__(self, *_: object) -> None:
        sys.settrace(self._before)

    def _enter(self, frame: FrameType, event: str, argument: Any) -> Any:
        return self._look if is_users(frame.f_code.co_filename) else None

    def _look(self, frame: FrameType, event: str, argument: Any) -> Any:
        function = frame.f_code.co_name
        for line, values in self._running.pop(frame, ()):
            self._end(line, values)
            self.ran.append(Ran(line, function, values))
        if event == "line":
            lines = _lines(frame.f_code.co_filename).get(frame.f_lineno, [])
            self._running[frame] = [(one, dict(_evaluated(one, frame))) for one in lines]
        elif event == "return" and (number := _number(argument)) is not None:
            self._returned[function] = number
        return self._look

    def _end(self, line: Line, values: dict[Key, float]) -> None:
        """Add the values of calls of functions, and of products with them."""
        for node in reversed([*ast.walk(line.root)]):
            match node:
                case ast.Call() if not _is_pure(node) and called_name(node) in self._returned:
                    values[key_of(line.file, node)] = self._returned[called_name(node)]
                case ast.BinOp(op=ast.Mult() | ast.Div() as op, left=left, right=right):
                    one, other = (values.get(key_of(line.file, each)) for each in (left, right))
                    if one is not None and other:
                        product = isinstance(op, ast.Mult)
                        values[key_of(line.file, node)] = one * other if product else one / other


def called_name(node: ast.Call) -> str:
    """Return the name of the function or the method that is called, "" where it has none."""
    match node.func:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
    return ""


@cache
def _lines(file: str) -> Mapping[int, list[Line]]:
    """Return the expressions of `file` by the line at which they begin to run."""
    try:
        tree = ast.parse("".join(linecache.getlines(file)))
    except SyntaxError:
        return {}
    found: dict[int, list[Line]] = {}
    for node in ast.walk(tree):
        for name, root in _named(node):
            found.setdefault(root.lineno, []).append(Line(file, root, name))
            if isinstance(node, ast.stmt) and node.lineno != root.lineno:  # in parentheses
                found.setdefault(node.lineno, []).append(Line(file, root, name))
    return found


def _named(node: Any) -> Iterator[tuple[str, ast.expr]]:
    """Yield the expressions that run as one, with the name of their value, "" for none."""
    match node:
        case ast.Assign(targets=[ast.Tuple(elts=targets)], value=ast.Tuple(elts=values)):
            yield from ((_name(one), value) for one, value in zip(targets, values, strict=False))
        case ast.Assign(targets=[target, *_], value=value):
            yield _name(target), value
        case ast.AnnAssign(target=target, value=ast.expr() as value):
            yield _name(target), value
        case ast.AugAssign(target=ast.Name(id=name) as target, op=op, value=value):
            before = ast.copy_location(ast.Name(name, ast.Load()), target)
            yield name, ast.copy_location(ast.BinOp(before, op, value), node)
        case ast.Return(value=ast.expr() as value):
            yield RETURNED, value
        case ast.Lambda(body=body):
            yield "", body
        case ast.ListComp(elt=element) | ast.GeneratorExp(elt=element):
            yield "", element


def _name(target: ast.expr) -> str:
    return target.id if isinstance(target, ast.Name) else ""


_PURE = frozenset({"min", "max", "abs", "float", "int", "pow", "round"})
_OF_MODULES = frozenset(
    {"sqrt", "cos", "sin", "pow", "exp", "log", "minimum", "maximum", "min", "max", "rsqrt"}
)
_MODULES = frozenset({"math", "np", "numpy", "torch"})


def _is_pure(node: ast.expr) -> bool:
    """Say whether an expression can be evaluated once more, without a call of the user's code."""
    match node:
        case ast.Name() | ast.Constant():
            return True
        case ast.Attribute(value=value):
            return _is_pure(value)
        case ast.BinOp(left=left, right=right):
            return _is_pure(left) and _is_pure(right)
        case ast.UnaryOp(operand=operand):
            return _is_pure(operand)
        case ast.IfExp(test=test, body=body, orelse=other):
            return all(map(_is_pure, (test, body, other)))
        case ast.Compare(left=left, comparators=others):
            return all(map(_is_pure, (left, *others)))
        case ast.Call(func=called, args=given, keywords=[]):
            return _is_known(called) and all(map(_is_pure, given))
    return False


def _is_known(called: ast.expr) -> bool:
    match called:
        case ast.Name(id=name):
            return name in _PURE
        case ast.Attribute(value=ast.Name(id=module), attr=name):
            return module in _MODULES and name in _OF_MODULES
    return False


def _evaluated(line: Line, frame: FrameType) -> Iterator[tuple[Key, float]]:
    for node in ast.walk(line.root):
        if isinstance(node, ast.expr) and _is_pure(node):
            try:
                number = _number(eval(_compiled(node), frame.f_globals, frame.f_locals))
            except Exception:  # a name of another function, or a branch that is not meant to run
                continue
            if number is not None:
                yield key_of(line.file, node), number


def _number(value: Any) -> float | None:
    """Return `value` as a finite number, None where it is none."""
    try:
        number = float(value)
    except Exception:  # what a user's code returns may raise anything
        return None
    return number if math.isfinite(number) else None


@cache
def _compiled(node: ast.expr) -> CodeType:
    return compile(ast.Expression(node), "<string>", "eval")


def key_of(file: str, node: ast.expr) -> Key:
    """Return the place of an expression of `file`."""
    return file, node.lineno, node.col_offset, node.end_lineno, node.end_col_offset
