"""Arguments that must be given and that no code reads, in all that a class or function calls."""

import ast
import inspect
import re
import sys
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from attentest.targets.adapt.encoders.inputs.arguments import replaced_masks
from attentest_spec import Backend

_SENTENCE = (
    "assumed that {} is without effect on purpose: it has to be given to {}, and no code reads it"
)
_REPLACED = (
    "assumed that {} is without effect on purpose: {} gives it another value before it reads it"
)
_LEFT = re.compile(
    r"self|cls|ctx|args|kwargs|_.*|unused.*|dummy.*|mode|name|layer_?(?:id|idx|number)"
)
"""Names of arguments that are often not read, on purpose or by a convention."""

_ON_PURPOSE = re.compile(
    r"\b(?:unused|ignor\w*|compatib\w*|interface|signature|deprecated|not used|no effect|api)\b",
    re.IGNORECASE,
)
"""Words which say that an argument is not read on purpose."""


def with_unread(made: Any, thing: Any) -> Backend:
    """Return the backend `made` of `thing` with the assumptions on arguments that no code reads."""
    found = unread_arguments(thing) if hasattr(made, "assumed") and made.understood else []
    if not found:
        return made  # type: ignore[no-any-return]
    head, *rest = made.understood
    assumed, understood = (*found, *made.assumed), (head, *found, *rest)
    return replace(made, assumed=assumed, understood=understood)  # type: ignore[no-any-return]


def unread_arguments(thing: Callable[..., Any]) -> list[str]:
    """Return an assumption on each argument that `thing`, or what it calls in its file, ignores.

    An argument that another class of the file reads in the same place is one of a common interface.
    """
    home = sys.modules.get(getattr(thing, "__module__", ""))
    name = getattr(thing, "__name__", "")
    if home is None or getattr(home, name, None) is not thing:
        return []
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(home)))
    except (OSError, TypeError, SyntaxError):
        return []
    defined = {one.name: one for one in tree.body if isinstance(one, _DEFINITIONS)}
    found = (
        _SENTENCE.format(own, where)
        for one in _reached(name, defined)
        for where, function in _functions(one)
        for own in _unread(function)
        if not _is_shared(function, own, defined)
    )
    replaced = replaced_masks(vars(thing).get("forward")) if inspect.isclass(thing) else []
    return list(dict.fromkeys([*found, *(_REPLACED.format(own, name) for own in replaced)]))


_DEFINITIONS = (ast.FunctionDef, ast.ClassDef)


def _reached(name: str, defined: dict[str, Any]) -> Iterator[Any]:
    """Yield the definition of `name` and all those that it names, directly or by others.

    A function that none of them calls, as one that they hand on to a hook, has the arguments of an
    interface.
    """
    waiting, seen = [name], set[str]()
    called = {name}
    while waiting:
        if (own := waiting.pop()) in seen or own not in defined:
            continue
        seen.add(own)
        nodes = [*ast.walk(defined[own])]
        waiting += sorted({one.id for one in nodes if isinstance(one, ast.Name)} - seen)
        calls = [one.func for one in nodes if isinstance(one, ast.Call)]
        called |= {one.id for one in calls if isinstance(one, ast.Name)}
    yield from (
        one
        for own, one in defined.items()
        if own in seen and (own in called or isinstance(one, ast.ClassDef))
    )


def _functions(definition: ast.AST) -> Iterator[tuple[str, ast.FunctionDef]]:
    """Yield the functions whose arguments count, by their names: a class is called by forward."""
    if isinstance(definition, ast.FunctionDef):
        yield definition.name, definition
    elif isinstance(definition, ast.ClassDef):
        for one in definition.body:
            if isinstance(one, ast.FunctionDef) and one.name in ("forward", "__call__"):
                yield definition.name, one


def _unread(function: ast.FunctionDef) -> Iterator[str]:
    """Yield the arguments without a default that the code of `function` does not read."""
    body = [one for one in function.body if not isinstance(one, ast.Pass | ast.Raise)]
    doc = ast.get_docstring(function) or ""
    if function.decorator_list or len(body) <= bool(doc) or _ON_PURPOSE.search(doc):
        return
    names = {one.id for one in ast.walk(function) if isinstance(one, ast.Name)}
    needed = len(function.args.args) - len(function.args.defaults)
    for one in function.args.args[:needed] if "locals" not in names else ():
        if one.arg not in names and not _LEFT.fullmatch(one.arg):
            yield one.arg


def _is_shared(function: ast.FunctionDef, own: str, defined: dict[str, Any]) -> bool:
    """Say whether another function of the same name in the file takes `own` and reads it."""
    others = (one for each in defined.values() for _, one in _functions(each))
    return any(
        one is not function
        and one.name == function.name
        and own in [each.arg for each in one.args.args]
        and own not in _unread(one)
        for one in others
    )
