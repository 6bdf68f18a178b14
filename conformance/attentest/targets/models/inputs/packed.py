"""Arguments that hold several inputs: all of a batch, or tokens with their lengths."""

import ast
import inspect
import sys
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from attentest.targets.adapt.components import squashed
from attentest.targets.adapt.reading import Reading, Unclear
from attentest.targets.language_models.argument_names import LABELS
from attentest.targets.models.arguments import Arguments, read, tokens_of

TUPLE, MAPPING, OBJECT = "tuple", "dictionary", "object"
"""The kinds of objects that hold the inputs of a call."""

_OF_TENSORS = ("shape", "device", "dtype", "ndim", "data", "T", "mT")


@dataclass(frozen=True)
class Packed:
    """The one argument `own` of a call, and the names by which its code takes the inputs in it."""

    own: str
    names: tuple[str, ...]
    holder: str


def unpacked(forward: Any) -> Packed | None:
    """Return the one argument of a call that holds its inputs, None where it holds none.

    The code takes it apart in order by one statement, `src, tgt = inputs`, and uses it nowhere
    else; or it reads nothing but keys of it (`batch["src"]`), or nothing but attributes.
    """
    held = list(inspect.signature(forward).parameters.values())[1:]
    own = [one.name for one in held if one.default is inspect.Parameter.empty]
    body = _code(forward)
    if body is None or len(own) != 1:
        return None
    used = [one for one in ast.walk(body) if isinstance(one, ast.Name) and one.id == own[0]]
    for one in ast.walk(body) if len(used) == 1 else ():
        if isinstance(one, ast.Assign) and one.value is used[0]:
            parts = getattr(one.targets[0], "elts", [])
            names = tuple(part.id for part in parts if isinstance(part, ast.Name))
            return Packed(own[0], names, TUPLE) if len(names) == len(parts) else None
    for holder, pairs in ((MAPPING, [*_keys(body)]), (OBJECT, [*_attributes(body)])):
        read_here = {id(node): word for node, word in pairs}
        names = tuple(dict.fromkeys(read_here.get(id(one), "") for one in used))
        if len(names) > 1 and all(names) and not {*names} & {*_OF_TENSORS}:
            return Packed(own[0], names, holder)
    return None


def input_names(forward: Any) -> set[str]:
    """Return the names of the inputs of a call, and of those in its one argument, in small letters.

    What is read of one argument is no target where it has a name of labels, except for a `target`
    next to a source.
    """
    packed = unpacked(forward)
    if packed is None or packed.holder == TUPLE:
        return {squashed(one) for one in inspect.signature(forward).parameters}
    found = {squashed(one) for one in packed.names}
    return found - {*LABELS} if found.isdisjoint(("src", "source")) else found


def _keys(body: ast.AST) -> Iterator[tuple[ast.expr, str]]:
    """Yield what is read by a key or by `get`, with the key."""
    for node in ast.walk(body):
        words: Sequence[ast.expr] = ()
        if isinstance(node, ast.Subscript):
            held, words = node.value, [node.slice]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            held, words = node.func.value, node.args[:1] * (node.func.attr == "get")
        for one in words:
            if isinstance(one, ast.Constant) and isinstance(one.value, str):
                yield held, one.value


def _attributes(body: ast.AST) -> Iterator[tuple[ast.expr, str]]:
    """Yield what attributes are read of, with their names, methods apart."""
    called = {id(one.func) for one in ast.walk(body) if isinstance(one, ast.Call)}
    for node in ast.walk(body):
        if isinstance(node, ast.Attribute) and id(node) not in called:
            yield node.value, node.attr


def read_packed(name: str, packed: Packed | None, reading: Reading) -> Arguments | None:
    """Return the arguments of a call whose one argument holds source and target.

    None where a tuple holds more than these, and where nothing says which of them is which.
    """
    if packed is None:
        return None
    kind = inspect.Parameter.KEYWORD_ONLY
    own = {
        one: inspect.Parameter(one, kind, default=None)
        if squashed(one) in LABELS and packed.holder != TUPLE
        else inspect.Parameter(one, kind)
        for one in packed.names
    }
    if packed.holder == TUPLE:
        sides = tokens_of(own, ("source", "target"), reading, ())
        if len(packed.names) != 2 or set(sides.values()) != set(packed.names):
            return None
        places = {role: f"{packed.own}[{packed.names.index(one)}]" for role, one in sides.items()}
        return Arguments(places, required=(packed.own,), packed=packed.own, holder=TUPLE)
    try:
        found = read(name, inspect.Signature(list(own.values())), ("source", "target"), reading)
    except Unclear:
        return None
    if {*own} - {*found.tokens.values(), *found.masks, *found.fixed, found.labels}:
        return None
    return replace(found, packed=packed.own, holder=packed.holder)


def devices_given(kind: type, reading: Reading) -> Reading:
    """Return `reading` with a dictionary for each argument of a call that holds a device alone.

    So it is with settings of which the class reads nothing but `config["device"]`.
    """
    body = _code(kind) or ast.Module([], [])
    own = list(inspect.signature(kind.forward).parameters.values())[1:]  # type: ignore[attr-defined]
    found = {}
    for one in own:
        if one.default is inspect.Parameter.empty and one.name not in reading.given:
            used = [key for held, key in _keys(body) if ast.unparse(held) == one.name]
            if used and all(squashed(key) == "device" for key in used):
                found[one.name] = dict.fromkeys(used, "cpu")
    return replace(reading, given={**reading.given, **found}) if found else reading


def taken_in_pairs(forward: Any, tokens: Mapping[str, str]) -> tuple[str, ...]:
    """Return the `tokens` that a call takes apart as `x[0]` and `x[1]`: they come with lengths.

    They are used in no other way before one is bound again, as by `x = x[0]`.
    """
    body = _code(forward)
    if body is None:
        return ()
    return tuple(own for own in tokens.values() if _is_taken_in_pairs(body, own))


def _code(thing: Any) -> ast.AST | None:
    try:
        return ast.parse(textwrap.dedent(inspect.getsource(thing)))
    except (OSError, SyntaxError, TypeError):
        return None


def _is_taken_in_pairs(body: ast.AST, own: str) -> bool:
    names = [one for one in ast.walk(body) if isinstance(one, ast.Name) and one.id == own]
    bound = [one.lineno for one in names if isinstance(one.ctx, ast.Store)]
    end = min(bound, default=sys.maxsize)
    places = {
        id(one.value): getattr(one.slice, "value", None)
        for one in ast.walk(body)
        if isinstance(one, ast.Subscript)
    }
    used = [one for one in names if isinstance(one.ctx, ast.Load) and one.lineno <= end]
    return {places.get(id(one)) for one in used} == {0, 1}
