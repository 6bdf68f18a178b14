"""Names of attributes that the code of a call reads and writes, in classes of arrays."""

import ast
import dis
import inspect
import re
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from functools import cache
from textwrap import dedent
from types import CodeType, FunctionType
from typing import Any

CALLS = ("__call__", "forward")
"""The methods by which an object is called, the likeliest first."""

TRAINING = ("training", "train", "is_training")
"""Names of the argument of a call that says whether it is one of training."""

_OPERATORS = re.compile(r"__[ir]?(add|sub|mul|matmul|truediv|pow|neg|getitem)__")
"""Methods that operators call: no code names them."""

BACKWARD = re.compile(r"_*backward\w*|_*grad(_fn)?")
"""Names of functions that compute gradients later: the call does not run them."""


def functions_called(kinds: Collection[type], called: Callable[..., Any]) -> set[FunctionType]:
    """Return the functions that a call of objects of some classes runs, as far as code shows it."""
    methods = [one for kind in kinds for one in methods_of(kind)]
    named: dict[str, list[FunctionType]] = {}
    for one in methods:
        named.setdefault(one.__name__, []).append(one)
    left: list[Any] = [inspect.unwrap(called)]
    left += [one for one in methods if one.__name__ in CALLS or _OPERATORS.match(one.__name__)]
    done: set[FunctionType] = set()
    while left:
        function = left.pop()
        if not inspect.isfunction(function) or function in done:
            continue
        done.add(function)
        for name in {name for code in codes_of(function) for name in _loaded(code)}:
            left += named.get(name, [])
            left += [function.__globals__[name]] if name in function.__globals__ else []
    return done


def names_read(functions: Collection[FunctionType]) -> set[str]:
    """Return the names that functions load, and their strings: `getattr` takes these."""
    return {
        name
        for one in functions
        for code in codes_of(one)
        for name in (*_loaded(code), *_begun(code))
    }


def names_written(kind: type, functions: Collection[FunctionType]) -> set[str]:
    """Return the attributes that those `functions` that are methods of `kind` write.

    What is computed from its former value is no such attribute: it is updated.
    """
    own = [one for one in methods_of(kind) if one in functions]
    return {name for one in own for name in _written(one)}


def methods_of(kind: type) -> Iterator[FunctionType]:
    """Yield the functions that a class and its bases define, those of properties included."""
    for one in kind.__mro__:
        for value in vars(one).values():
            plain = value.fget if isinstance(value, property) else value
            plain = getattr(plain, "__func__", plain)
            if inspect.isfunction(plain):
                yield plain


def codes_of(function: Callable[..., Any]) -> Iterator[CodeType]:
    """Yield the code of a function and of its inner functions, but what computes gradients."""
    left = [inspect.unwrap(function).__code__]
    while left:
        code = left.pop()
        yield code
        inner = [one for one in code.co_consts if isinstance(one, CodeType)]
        left += [one for one in inner if not BACKWARD.fullmatch(one.co_name)]


def _loaded(code: CodeType) -> Iterator[str]:
    for one in dis.get_instructions(code):
        if one.opname.startswith(("LOAD_ATTR", "LOAD_METHOD", "LOAD_GLOBAL", "LOAD_NAME")):
            yield str(one.argval)
    yield from (one for one in code.co_consts if isinstance(one, str))


def _begun(code: CodeType) -> Iterator[str]:
    """Yield the beginnings of names that code puts together for `getattr`, each with a `*`."""
    if "getattr" in code.co_names:
        strings = (one for one in code.co_consts if isinstance(one, str))
        yield from (f"{one}*" for one in strings if one.isidentifier())


def is_read(name: Any, read: Collection[str]) -> bool:
    """Say whether an attribute is among the names that are read, or begins as one of them."""
    text = str(name)
    return text in read or any(f"{text[:end]}*" in read for end in range(1, len(text)))


@cache
def _written(function: FunctionType) -> frozenset[str]:
    with suppress(OSError, TypeError, SyntaxError):  # code without a file
        tree = ast.parse(dedent(inspect.getsource(function)))
        return frozenset(_assigned(tree))
    return frozenset()


def _assigned(tree: ast.AST) -> Iterator[str]:
    """Yield the attributes of `self` that code assigns, whole or a part of them."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign):
            used = {ast.unparse(one) for one in ast.walk(node.value) if _is_own(one)}
            targets = [one for target in node.targets for one in _flat(target)]
            for one in map(_whole, targets):
                if isinstance(one, ast.Attribute) and _is_own(one) and ast.unparse(one) not in used:
                    yield one.attr


def _flat(target: ast.expr) -> Iterator[ast.expr]:
    if isinstance(target, ast.Tuple | ast.List):
        for one in target.elts:
            yield from _flat(one)
    else:
        yield target


def _whole(target: ast.expr) -> ast.expr:
    """Return what a part is assigned of: `self.cache` of `self.cache[:, 0]`."""
    while isinstance(target, ast.Subscript):
        target = target.value
    return target


def _is_own(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id == "self"
    )
