"""Attention that code calls with one sequence alone, and that fails for keys of another length."""

import ast
import inspect
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from attentest.targets.adapt.assumptions.devices import B, limited
from attentest.targets.adapt.assumptions.one_sequence import refusal_of_contexts
from attentest.targets.neighbours import bodies_naming

SENTENCE = (
    "assumed that it attends within one sequence, as all code around calls it: keys of another "
    "length than the queries fail ({}). If it is to attend to a memory, this is a mistake, and "
    "--strict reports it"
)
_INPUTS = ("query", "key", "value", "q", "k", "v", "queries", "keys", "values")
"""Keywords of queries, keys and values."""


def with_calls_of_one_sequence(backend: B, thing: Any) -> B:
    """Return the inferred `backend` of `thing`, given one sequence where code gives it no other.

    There has to be a call, and keys of another length have to fail.
    """
    if not (backend.limits.cross and inspect.isclass(thing)) or not is_called_with_one(thing):
        return backend
    failure = refusal_of_contexts(backend, joined=False)
    if not failure:
        return backend
    return limited(backend, replace(backend.limits, cross=False), SENTENCE.format(failure))


def is_called_with_one(thing: type) -> bool:
    """Say whether code around calls objects of `thing`, and always with one value for all inputs.

    These are attributes that get an object of the class, or an argument with its annotation.
    """
    found = [one for body in bodies_naming(thing) for one in _calls(body, thing.__name__)]
    return bool(found) and all(found)


def _calls(body: Sequence[ast.stmt], name: str) -> Iterator[bool]:
    """Yield for each call of an object of the class `name` whether its inputs are one value."""
    for owner in (one for one in body if isinstance(one, ast.ClassDef)):
        inner = list(ast.walk(owner))
        held = {one for node in inner if isinstance(node, ast.Assign) for one in _holders(node)}
        arguments = [one for one in inner if isinstance(one, ast.arg)]
        named = {one.arg for one in arguments if _name(one.annotation) == name}
        own = {attribute for attribute, made in held if made == name or made in named}
        for call in (one for one in inner if isinstance(one, ast.Call)):
            if isinstance(call.func, ast.Attribute) and call.func.attr in own:
                yield _is_of_one(call)


def _holders(node: ast.Assign) -> Iterator[tuple[str, str]]:
    """Yield the attributes that an assignment sets, with what is made or given there."""
    pairs = [(target, node.value) for target in node.targets]
    for target, value in list(pairs):
        if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
            pairs += zip(target.elts, value.elts, strict=False)
    for target, value in pairs:
        made = value.func if isinstance(value, ast.Call) else value
        if isinstance(target, ast.Attribute) and _name(made):
            yield target.attr, _name(made)


def _name(node: ast.AST | None) -> str:
    return getattr(node, "id", "") or getattr(node, "attr", "")


def _is_of_one(call: ast.Call) -> bool:
    """Say whether the first three inputs of a call are the same expression."""
    given = [one.value for one in call.keywords if one.arg in _INPUTS]
    inputs = [*call.args[: 3 - len(given)], *given]
    return len({ast.dump(one) for one in inputs}) == 1
