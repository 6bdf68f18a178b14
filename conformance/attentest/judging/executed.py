"""Observes which branches of the user's code the judged calls run.

What a switch or an argument that is not given leaves out is not judged, and the report says where
that is. Lines are traced in functions of the user alone, until each of them was run once.
"""

import ast
import inspect
import os
import re
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from attentest.analysis.lines.recording import home_of, is_users
from attentest.results.branches import Branch

_Function = ast.FunctionDef | ast.AsyncFunctionDef
_Block = tuple[Sequence[ast.stmt], str]
"""Statements, and the condition under which they run."""

LONGEST = 48
"""The largest number of characters of a condition that are shown."""


class Executed:
    """The lines of the user's code that were run by the calls inside of :meth:`watch`."""

    def __init__(self, target: object, backend: object = None) -> None:
        """Observe code of the user, and that of the installed package which `target` is in.

        The arguments of its constructor are those of the code of `backend`.
        """
        self._own = _package_of(target)
        self._switches = _switches(getattr(getattr(backend, "code", None), "thing", None))
        self._left: dict[int, set[int]] = {}  # by the identity of the code, whose hash is slow
        self._entered: list[tuple[CodeType, frozenset[int], set[int]]] = []
        self._unseen = False  # a call was not traced, which may have run any branch

    @contextmanager
    def watch(self) -> Iterator[None]:
        """Trace the calls inside; none where a debugger or a coverage tool traces already.

        Nor where code is compiled by torch: that runs other code in its place.
        """
        self._unseen |= _is_compiled() or sys.gettrace() is not None
        if self._unseen:
            yield
            return
        sys.settrace(self._enter)
        try:
            yield
        finally:
            sys.settrace(None)
            self._unseen |= _is_compiled()

    def branches(self) -> tuple[Branch, ...]:
        """Return the branches of all functions that were entered, and whether they were run.

        None where a call was not traced.
        """
        if self._unseen:
            return ()
        lines: defaultdict[str, set[int]] = defaultdict(set)
        ran: defaultdict[str, set[int]] = defaultdict(set)
        entered: defaultdict[str, set[int]] = defaultdict(set)
        for code, known, left in (one for one in self._entered if one[1]):
            lines[code.co_filename] |= known
            ran[code.co_filename] |= known - left
            entered[code.co_filename].add(code.co_firstlineno)
        return tuple(
            Branch(file, *one, _any(one[:2], ran[file]), _turning(one[2], self._switches))
            for file, starts in sorted(entered.items())
            for one in _conditional(file, starts)
            if _any(one[:2], lines[file])
        )

    def _enter(self, frame: FrameType, event: str, argument: Any) -> Callable[..., Any] | None:
        """Return what traces the lines of a function, None where no line is left or wanted."""
        code = frame.f_code
        left = self._left.get(id(code))
        if left is None:
            known = {line for *_, line in code.co_lines() if line} if self._is_users(code) else ()
            left = self._left[id(code)] = set(known)
            self._entered.append((code, frozenset(left), left))
        if not left:
            return None

        def ran(frame: FrameType, event: str, argument: Any) -> Callable[..., Any] | None:
            if event == "line":
                left.discard(frame.f_lineno)
            return ran if left else None

        return ran

    def _is_users(self, code: CodeType) -> bool:
        return is_users(code.co_filename, self._own)


def _is_compiled() -> bool:
    """Say whether torch has compiled a function; to import its compiler is no such sign."""
    compiler = sys.modules.get("torch._dynamo.utils")
    return compiler is not None and bool(compiler.counters["frames"])


def _package_of(target: object) -> tuple[str, ...]:
    """Return the folder of the installed package that a target is in, () for other code."""
    if isinstance(target, str):
        place = target.rpartition(":")[0] or target
        module = sys.modules.get(place)
        file = place if module is None else module.__file__ or ""
    else:
        named = inspect.isclass(target) or inspect.isroutine(target)
        home = inspect.getmodule(target if named else type(target))
        file = getattr(home, "__file__", None) or ""
    return home_of(os.path.abspath(file)) if file else ()


def _switches(thing: object) -> dict[str, bool]:
    """Return the switches of the constructor of a class, with their defaults; {} for others."""
    if not inspect.isclass(thing):
        return {}
    try:
        parameters = inspect.signature(thing).parameters
    except (TypeError, ValueError):
        return {}
    return {own: one.default for own, one in parameters.items() if isinstance(one.default, bool)}


_SWITCHED = re.compile(r"(else of )?(not )?(?:self\.)?(\w+)")


def _turning(condition: str, switches: Mapping[str, bool]) -> str:
    """Return the argument under which a branch runs and by default does not, "" for none."""
    found = _SWITCHED.fullmatch(condition)
    if found is None or found[3] not in switches:
        return ""
    value = bool(found[1]) == bool(found[2])
    return f"{found[3]}={value}" if switches[found[3]] != value else ""


def _any(lines: tuple[int, int], known: Iterable[int]) -> bool:
    first, last = lines
    return any(first <= one <= last for one in known)


def _conditional(file: str, starts: set[int]) -> Iterator[tuple[int, int, str]]:
    """Yield the branches of the functions of `file` that begin on the lines `starts`."""
    try:
        tree = ast.parse(Path(file).read_text(encoding="utf-8"))
    except (OSError, ValueError, SyntaxError):  # code of a notebook, or changed since
        return
    for node in ast.walk(tree):
        if isinstance(node, _Function):
            first = min([node.lineno, *(one.lineno for one in node.decorator_list)])
            if first in starts:
                for block, condition in _blocks(node.body):
                    yield block[0].lineno, block[-1].end_lineno or block[-1].lineno, condition


def _blocks(body: Sequence[ast.stmt]) -> Iterator[_Block]:
    """Yield the statements that run under a condition, but for those that only report it.

    Those behind an early return run under its contrary.
    """
    for number, one in enumerate(body):
        if isinstance(one, ast.If) and not _is_of_tools(one.test):
            test = ast.unparse(one.test)
            rest = body[number + 1 :]
            contrary = one.orelse or (rest if isinstance(one.body[-1], ast.Return) else [])
            yield from _worth(one.body, test)
            yield from _worth(contrary, f"else of {test}")
        for inner in _inside(one):
            yield from _blocks(inner)


def _inside(statement: ast.stmt) -> Iterator[Sequence[ast.stmt]]:
    """Yield the blocks of a statement that belong to the same function."""
    if isinstance(statement, _Function | ast.ClassDef):
        return
    for name in ("body", "orelse", "finalbody"):
        if block := getattr(statement, name, None):
            yield block


def _worth(block: Sequence[ast.stmt], condition: str) -> Iterator[_Block]:
    """Yield a block, unless it does nothing but raise, warn, print or pass."""
    first = block[0] if block else None
    if isinstance(first, ast.If) and condition.startswith("else of ") and len(block) == 1:
        return  # an elif, whose own branches are listed
    if not all(map(_only_reports, block)):
        short = condition if len(condition) <= LONGEST else f"{condition[:LONGEST]}.."
        yield block, short


def _only_reports(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.Raise | ast.Assert | ast.Pass | ast.Continue | ast.Break):
        return True
    if isinstance(statement, ast.Return):
        return statement.value is None or isinstance(statement.value, ast.Constant)
    if not isinstance(statement, ast.Expr):
        return False
    if isinstance(statement.value, ast.Constant):
        return True
    called = statement.value.func if isinstance(statement.value, ast.Call) else None
    name = ast.unparse(called).lower() if called is not None else ""
    return name == "print" or any(word in name for word in ("warn", "log.", "logger", "logging"))


_TOOLS = ("is_scripting", "is_tracing", "is_compiling", "is_in_onnx_export", "TYPE_CHECKING")


def _is_of_tools(test: ast.expr) -> bool:
    """Say whether a condition is about a compiler or an export, under which nothing is judged."""
    return any(word in ast.unparse(test) for word in _TOOLS)
